package dag

import "errors"

// ErrEffectRefused: the run is a fork that does nothing outside which the run it comes from
// has not done, and that one has not done this effect. Nothing was done. A visit that fails
// with it has failed for good.
var ErrEffectRefused = errors.New("dag: the run that this one is a fork of has not done the effect, and the fork does nothing new")
