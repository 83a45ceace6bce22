package dag

import "errors"

// ErrEffectRefused: the run is a fork that may not do the effect. Either the fork does nothing
// outside, and the run it comes from has no result of this effect, because it was not done there or
// nobody knows; or the fork does only what was not done there, and that run was trimmed, so that
// nobody knows whether it was. Nothing was done. A visit that fails with it has failed for good.
var ErrEffectRefused = errors.New("dag: the fork may not do the effect")
