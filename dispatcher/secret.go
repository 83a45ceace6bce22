package dispatcher

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A SecretError says that settings, labels, a correlation id or a tag hold what looks like a
// secret. They are refused, and nothing has changed, because the log keeps them as they are, tools
// show them, and events carry them. Name the place where a secret is found, and have the node fetch
// it.
//
// The check is a net and no proof. It knows names that say what they hold (password, api_key,
// access token…) and the forms of common keys and tokens.
type SecretError struct {
	In     string // settings, labels, correlation or tag
	Path   string // in it, as jq writes it: .llm.api_key, .models[2]
	Reason string // never quotes the value
}

func (e *SecretError) Error() string {
	verb, at := "hold", " at "+e.Path
	if e.In == "tag" || e.In == "correlation" {
		verb = "holds"
	}
	if e.Path == "." { // it is all of it
		at = ""
	}
	return fmt.Sprintf("dispatcher: %s %s what looks like a secret%s: %s: name where it is found, and have the node fetch it", e.In, verb, at, e.Reason)
}

// secretIn finds the first secret in a value that JSON was decoded to: in the order of
// names and of items. told: the name of the value, or of the list around it, says that it
// is one.
func secretIn(value any, path string, told bool) (at, reason string) {
	switch v := value.(type) {
	case string:
		if told && v != "" {
			return path, "its name says so"
		}
		if reason := secretForm(v); reason != "" {
			return path, reason
		}
	case json.Number, bool, nil:
	case []any:
		for i, item := range v {
			if at, reason := secretIn(item, path+"["+strconv.Itoa(i)+"]", told); reason != "" {
				return at, reason
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := path + member(name)
			if reason := secretForm(name); reason != "" {
				return path + "[…]", reason
			}
			if at, reason := secretIn(v[name], at, tellsSecret(name)); reason != "" {
				return at, reason
			}
		}
	}
	return "", ""
}

var plainMember = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func member(name string) string {
	if plainMember.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

// secretNames are what a name that holds a secret says, without what separates words.
var secretNames = []string{
	"password", "passwd", "passphrase", "pwd", "secret", "apikey", "accesskey", "secretkey",
	"privatekey", "signingkey", "encryptionkey", "accesstoken", "refreshtoken", "authtoken",
	"bearertoken", "sessiontoken", "bearer", "authorization", "credential",
}

// secretPlaces are last words of names that say where a secret is found, and hold none:
// password_file, secretName.
var secretPlaces = []string{
	"name", "file", "path", "url", "uri", "ref", "env", "endpoint", "store", "vault", "provider",
}

// tellsSecret reports whether the name of a member says that it holds a secret: apiKey,
// OPENAI_API_KEY, db-password, clientsecret. A longer word that only begins like one does
// not: secretary.
func tellsSecret(name string) bool {
	words := wordsOf(name)
	if len(words) == 0 || slices.Contains(secretPlaces, words[len(words)-1]) {
		return false
	}
	for i, word := range words {
		word = strings.TrimSuffix(word, "s")
		two := word
		if i > 0 {
			two = words[i-1] + word
		}
		for _, s := range secretNames {
			if word == s || two == s || len(s) > 3 && strings.HasSuffix(word, s) {
				return true
			}
		}
	}
	return len(words) == 1 && words[0] == "token"
}

// wordsOf splits a name into words of lower case: at what is no letter or digit, and where
// the case rises, as in apiKey and APIKey.
func wordsOf(name string) []string {
	runes := []rune(name)
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = nil
	}
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			end()
			continue
		}
		if i > 0 && unicode.IsUpper(r) &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			end()
		}
		word = append(word, r)
	}
	end()
	return words
}

// secretForms are the forms of keys and tokens that can be told from other text.
var secretForms = []struct {
	is   string
	form *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY`)},
	{"an API key", regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:sk-|[sr]k_(?:live|test)_)[A-Za-z0-9_-]*(?:[0-9]|[A-Za-z]{12})`)},
	{"a token of GitHub", regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:gh[oprsu]_|github_pat_)[A-Za-z0-9_]{4,}`)},
	{"a token of GitLab", regexp.MustCompile(`(?:^|[^A-Za-z0-9])glpat-[A-Za-z0-9_-]{8,}`)},
	{"an access key of AWS", regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{8,}`)},
	{"an API key of Google", regexp.MustCompile(`(?:^|[^A-Za-z0-9])AIza[0-9A-Za-z_-]{20,}`)},
	{"a token of Slack", regexp.MustCompile(`(?:^|[^A-Za-z0-9])xox[a-z]-[A-Za-z0-9-]{4,}`)},
	{"a JSON Web Token", regexp.MustCompile(`(?:^|[^A-Za-z0-9])eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`)},
	{"a bearer token", regexp.MustCompile(`(?i)^\s*bearer\s+\S+\s*$`)},
	{"a URL with a password", regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@`)},
}

// secretForm says what kind of secret a text holds, by its form; "" if none is known.
func secretForm(text string) string {
	if len(text) < 6 {
		return ""
	}
	for _, s := range secretForms {
		if s.form.MatchString(text) {
			return "it has the form of " + s.is
		}
	}
	return ""
}
