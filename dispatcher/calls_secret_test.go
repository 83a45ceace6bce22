package dispatcher_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// What looks like a secret is refused with the place where it stands, and never quoted.
func TestCallsSecretsAreRefused(t *testing.T) {
	d := process(t, callsSettingsGraph(t), new(memory.Store), dispatcher.Options{})
	for settings, at := range map[string]string{
		`{"password": "x"}`:                                     ".password",
		`{"db": {"Passwd": "x"}}`:                               ".db.Passwd",
		`{"db_password": "x"}`:                                  ".db_password",
		`{"dbPasswords": ["", "x"]}`:                            ".dbPasswords[1]",
		`{"mypassword": "x"}`:                                   ".mypassword",
		`{"secret": "x"}`:                                       ".secret",
		`{"client-secret": "x"}`:                                `["client-secret"]`,
		`{"clientSecret": "x"}`:                                 ".clientSecret",
		`{"api_key": "x"}`:                                      ".api_key",
		`{"APIKey": "x"}`:                                       ".APIKey",
		`{"apikey": "x"}`:                                       ".apikey",
		`{"OPENAI_API_KEY": "x"}`:                               ".OPENAI_API_KEY",
		`{"api key 2": "x"}`:                                    `["api key 2"]`,
		`{"openaiApiKey": "x"}`:                                 ".openaiApiKey",
		`{"accessToken": "x"}`:                                  ".accessToken",
		`{"refresh-token": "x"}`:                                `["refresh-token"]`,
		`{"AUTH_TOKEN": "x"}`:                                   ".AUTH_TOKEN",
		`{"token": "x"}`:                                        ".token",
		`{"Bearer": "x"}`:                                       ".Bearer",
		`{"headers": {"Authorization": "x"}}`:                   ".headers.Authorization",
		`{"credentials": "x"}`:                                  ".credentials",
		`{"private_key": "x"}`:                                  ".private_key",
		`{"PrivateKey": "x"}`:                                   ".PrivateKey",
		`{"a": [1, {"x": "sk-abc123def456"}]}`:                  ".a[1].x",
		`"sk-proj-abcdefghijklmnop"`:                            ".",
		`{"a": "key: sk_live_abcdef123456"}`:                    ".a",
		`{"a": "ghp_0123456789abcdefghij"}`:                     ".a",
		`{"a": "github_pat_0123456789abcdefghij"}`:              ".a",
		`{"a": "glpat-0123456789abcdefghij"}`:                   ".a",
		`{"a": "AKIAIOSFODNN7EXAMPLE"}`:                         ".a",
		`{"a": "AIzaSyA-0123456789abcdefghijklmnopqrstu"}`:      ".a",
		`{"a": "xoxb-123456789012-abcdefghij"}`:                 ".a",
		`{"a": "-----BEGIN RSA PRIVATE KEY-----\nMIIE"}`:        ".a",
		`{"a": "-----BEGIN PRIVATE KEY-----\nMIIE"}`:            ".a",
		`{"a": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"}`:    ".a",
		`{"a": "Bearer abc"}`:                                   ".a",
		`{"a": "postgres://user:word@db/inquiries"}`:            ".a",
		`{"AKIAIOSFODNN7EXAMPLE": 1}`:                           "[…]",
		`{"b": 1, "a": {"secret": "x"}, "secret": "later"}`:     ".a.secret",
		`{"secret": "", "x": {"secret": "\u0068idden"}}`:        ".x.secret",
		`{"\u0061pi_key": "x"}`:                                 ".api_key",
		`{"a": "sk\u002dabc123def456"}`:                         ".a",
		`{"password": null, "password": "x"}`:                   ".password",
		`[{"token": 1}, {"token": "x"}]`:                        "[1].token",
		`{"a": {"b": {"c": [[{"secretKeys": ["", "hush"]}]]}}}`: ".a.b.c[0][0].secretKeys[1]",
	} {
		_, err := d.Run(t.Context(), run, nil, dispatcher.Settings(json.RawMessage(settings), "me"))
		var s *dispatcher.SecretError
		if !errors.As(err, &s) || s.In != "settings" || s.Path != at {
			t.Errorf("%s: %v, want a SecretError at %s", settings, err, at)
			continue
		}
		for _, value := range []string{"hush", "hidden", "abc123", "MIIE", "word@"} {
			if strings.Contains(err.Error(), value) {
				t.Errorf("%s: the error quotes it: %v", settings, err)
			}
		}
	}
}

// What only resembles a secret is fine: the net has to let people work.
func TestCallsSettingsThatAreNoSecrets(t *testing.T) {
	for settings := range map[string]bool{
		`{"max_tokens": 4096, "maxTokens": 1, "tokens": 3, "token_limit": "high"}`: true,
		`{"password": "", "secret": null, "api_key": null, "token": false}`:        true,
		`{"secretary": "Ann", "author": "bob", "keyboard": "qwerty"}`:              true,
		`{"password_file": "/run/secrets/db", "apiKeyEnv": "OPENAI_API_KEY"}`:      true,
		`{"secret_name": "prod/db", "authorizationUrl": "https://id/authorize"}`:   true,
		`{"password_length": 12, "credentials": {"user": "ann"}}`:                  true,
		`{"model": "gpt-5-mini", "library": "sk-learn", "task": "risk-2024"}`:      true,
		`{"text": "bearer of good news", "url": "https://host:8080/a@b"}`:          true,
		`{"text": "AKIA is a prefix; so are ghp_ and xoxb-"}`:                      true,
		`{"file": "eyJ.txt", "version": "1.2.3", "basket": "sk-"}`:                 true,
		`"free text"`: true, `17`: true, `[]`: true, `true`: true,
	} {
		d := process(t, callsGraph(t, new(witness).sees(nil)), new(memory.Store), dispatcher.Options{})
		if _, err := d.Run(t.Context(), run, nil, dispatcher.Settings(json.RawMessage(settings), "")); err != nil {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
