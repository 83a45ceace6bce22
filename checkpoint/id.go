package checkpoint

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// maxID is the longest id of a run or a post, in bytes.
const maxID = 256

// CheckRunID returns an error that wraps [ErrRunID] and quotes the id, unless id can name a run: 1
// to 256 bytes of UTF-8 without control characters. Blanks, quotes and slashes are fine, and no two
// ids are ever taken for one another. Ids that begin with pawl.record/ are those of the logs of a
// record.Ledger, which a store keeps like others, and a dispatcher refuses.
func CheckRunID(id string) error {
	if reason := badID(id); reason != "" {
		return fmt.Errorf("%w: %.64q %s: %s", ErrRunID, id, reason, goodID)
	}
	return nil
}

// CheckPostID is [CheckRunID] for the id of a [Post]; its error wraps [ErrPostID].
func CheckPostID(id string) error {
	if reason := badID(id); reason != "" {
		return fmt.Errorf("%w: %.64q %s: %s", ErrPostID, id, reason, goodID)
	}
	return nil
}

// CheckDigest is [CheckRunID] for the digest of a graph; its error wraps nothing.
func CheckDigest(digest string) error {
	if reason := badID(digest); reason != "" {
		return fmt.Errorf("checkpoint: bad graph digest: %.64q %s", digest, reason)
	}
	return nil
}

// goodID says what an id has to be.
const goodID = "give 1 to 256 bytes of UTF-8 without control characters"

// printable reports whether an id is of ASCII that can be printed, as most are: stores are asked
// for one in every call.
func printable(id string) bool {
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

func badID(id string) string {
	switch {
	case id == "":
		return "is empty"
	case len(id) > maxID:
		return fmt.Sprintf("has %d bytes, the limit is %d", len(id), maxID)
	case printable(id):
		return ""
	case !utf8.ValidString(id):
		return "is not UTF-8"
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return "holds a control character"
		}
	}
	return ""
}
