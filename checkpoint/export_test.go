package checkpoint

import "time"

// Forge returns an envelope with a header that is right for any payload.
func Forge(payload []byte, count int) []byte {
	e, _ := ForgeBehind(Head{}, payload, count)
	return e
}

// ForgeBehind is Forge for an append that follows a position. It returns that at its end too.
func ForgeBehind(after Head, payload []byte, count int) ([]byte, Head) {
	e := beginSeal(nil, formatV2, after, time.UnixMilli(0), 1, count)
	e, digest := endSeal(append(e, payload...), 0)
	return e, Head{Seq: after.Seq + uint64(count), Digest: digest}
}
