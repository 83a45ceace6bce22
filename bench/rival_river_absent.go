//go:build rivals && !river

package main

import "errors"

func openRiver(session) (*service, error) { return nil, errors.New("built without the tag river") }
