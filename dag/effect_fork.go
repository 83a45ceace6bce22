package dag

import "errors"

// ErrEffectRefused: the run is a fork that does nothing outside, and the run it comes from has no
// result of this effect, be it that it was not done there or that nobody knows; or it is one that
// does what was not done there, and whether this was is not known any more, since that run was
// trimmed. Nothing was done. A visit that fails with it has failed for good.
var ErrEffectRefused = errors.New("dag: the fork may not do the effect")
