package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	webauthn "github.com/descope/virtualwebauthn"
)

// keyKind is a kind of key that virtualwebauthn has, with the COSE algorithm that it signs by.
type keyKind struct {
	name string
	kind webauthn.KeyType
}

var kinds = []keyKind{{"ES256", webauthn.KeyTypeEC2}, {"RS256", webauthn.KeyTypeRSA}}

// sizeOfES256 is that of a COSE key whose coordinates have 32 bytes each. virtualwebauthn drops leading zeros, which
// RFC 9053, section 7.1.1 forbids, so that one key of 128 would be refused.
const sizeOfES256 = 77

func newCredential(kind webauthn.KeyType) webauthn.Credential {
	for {
		made := webauthn.NewCredential(kind)
		if kind != webauthn.KeyTypeEC2 || len(made.Key.AttestationData()) == sizeOfES256 {
			return made
		}
	}
}

func (c *client) party() webauthn.RelyingParty {
	return webauthn.RelyingParty{ID: "localhost", Name: "installation", Origin: c.input.Origin}
}

// register runs one ceremony with the answer of `answerTo` to its options.
func (c *client) register(answerTo func(options webauthn.AttestationOptions) string) (answer, error) {
	begun, err := c.expect(200, "POST", "/api/passkey/register/options", map[string]string{"display_name": "Virtual"})
	if err != nil {
		return answer{}, err
	}
	options, err := webauthn.ParseAttestationOptions(string(begun.Options))
	if err != nil {
		return answer{}, err
	}
	return c.send("POST", "/api/passkey/register/verify", map[string]any{
		"transaction_id":       begun.Transaction,
		"attestation_response": json.RawMessage(answerTo(*options)),
	})
}

// ceremony has the two routes of an assertion.
type ceremony struct{ begin, verify string }

var (
	signIn     = ceremony{"/api/auth/passkey/assertion/options", "/api/auth/passkey/assertion/verify"}
	secondStep = ceremony{"/api/auth/verify-passkey/options", "/api/auth/verify-passkey"}
)

// assert runs one ceremony; a login token is needed by the second step alone.
func (c *client) assert(by ceremony, loginToken string, answerTo func(options webauthn.AssertionOptions) (string, error)) (answer, error) {
	body := map[string]any{}
	if loginToken != "" {
		body["login_token"] = loginToken
	}
	begun, err := c.expect(200, "POST", by.begin, body)
	if err != nil {
		return answer{}, err
	}
	options, err := webauthn.ParseAssertionOptions(string(begun.Options))
	if err != nil {
		return answer{}, err
	}
	response, err := answerTo(*options)
	if err != nil {
		return answer{}, err
	}
	body["transaction_id"], body["assertion_response"] = begun.Transaction, json.RawMessage(response)
	return c.send("POST", by.verify, body)
}

// judgeKey registers a key, signs in with it in both ways, and tries faults.
func judgeKey(r *report, c *client, kind keyKind) error {
	credential, authenticator := newCredential(kind.kind), webauthn.NewAuthenticator()
	added, err := c.register(func(options webauthn.AttestationOptions) string {
		r.outcome(kind.name+": the options are for the installation", options.RelyingPartyID == "localhost" && len(options.Challenge) == 32, options)
		r.outcome(kind.name+": the handle is no address", len(options.UserID) == 16 && options.UserName == c.input.Email, options)
		authenticator.Options.UserHandle = []byte(options.UserID)
		return webauthn.CreateAttestationResponse(c.party(), authenticator, credential, options)
	})
	if err != nil {
		return err
	}
	r.answered(kind.name+": a passkey with its own attestation is added", added, 201, "")
	authenticator.AddCredential(credential)
	use := func(options webauthn.AssertionOptions) (string, error) {
		credential.Counter++
		return webauthn.CreateAssertionResponse(c.party(), authenticator, credential, options), nil
	}
	signedIn, err := c.assert(signIn, "", use)
	if err != nil {
		return err
	}
	r.answered(kind.name+": it signs in by itself", signedIn, 200, "")
	if err := judgeSecondStep(r, c, kind, authenticator, use); err != nil {
		return err
	}
	if err := judgeRegistrationFaults(r, c, kind); err != nil {
		return err
	}
	return judgeAssertionFaults(r, c, kind, authenticator, &credential)
}

func judgeSecondStep(r *report, c *client, kind keyKind, authenticator webauthn.Authenticator, use func(webauthn.AssertionOptions) (string, error)) error {
	begun, err := c.login()
	if err != nil {
		return err
	}
	r.outcome(kind.name+": the password asks for a passkey", slices.Contains(begun.Methods, "passkey"), begun.Methods)
	confirmed, err := c.assert(secondStep, begun.LoginToken, func(options webauthn.AssertionOptions) (string, error) {
		if authenticator.FindAllowedCredential(options) == nil {
			return "", errors.New("the second step does not name the passkey")
		}
		return use(options)
	})
	if err != nil {
		return err
	}
	r.answered(kind.name+": it completes the sign-in", confirmed, 200, "")
	return nil
}

// fault is one change of an honest answer.
type fault struct {
	name   string
	change func(party *webauthn.RelyingParty, options *webauthn.AuthenticatorOptions, challenge []byte)
}

var faults = []fault{
	{"another origin", func(party *webauthn.RelyingParty, _ *webauthn.AuthenticatorOptions, _ []byte) {
		party.Origin = "https://example.org"
	}},
	{"another rp.id", func(party *webauthn.RelyingParty, _ *webauthn.AuthenticatorOptions, _ []byte) {
		party.ID = "example.org"
	}},
	{"no verification of the person", func(_ *webauthn.RelyingParty, options *webauthn.AuthenticatorOptions, _ []byte) {
		options.UserNotVerified = true
	}},
	{"no presence of the person", func(_ *webauthn.RelyingParty, options *webauthn.AuthenticatorOptions, _ []byte) {
		options.UserNotPresent = true
	}},
	{"backed up and not eligible for it", func(_ *webauthn.RelyingParty, options *webauthn.AuthenticatorOptions, _ []byte) {
		options.BackupState = true
	}},
	{"another challenge", func(_ *webauthn.RelyingParty, _ *webauthn.AuthenticatorOptions, challenge []byte) { challenge[0] ^= 1 }},
}

func judgeRegistrationFaults(r *report, c *client, kind keyKind) error {
	for _, one := range faults {
		refused, err := c.register(func(options webauthn.AttestationOptions) string {
			party, authenticator := c.party(), webauthn.NewAuthenticator()
			one.change(&party, &authenticator.Options, options.Challenge)
			return webauthn.CreateAttestationResponse(party, authenticator, newCredential(kind.kind), options)
		})
		if err != nil {
			return err
		}
		r.answered(fmt.Sprintf("%s: registration, %s", kind.name, one.name), refused, 400, "INVALID_ATTESTATION")
	}
	return nil
}

// judgeAssertionFaults ends with a counter that goes back, which disables the passkey.
func judgeAssertionFaults(r *report, c *client, kind keyKind, authenticator webauthn.Authenticator, credential *webauthn.Credential) error {
	counter := func(party *webauthn.RelyingParty, _ *webauthn.AuthenticatorOptions, _ []byte) { credential.Counter = 1 }
	honest := func(*webauthn.RelyingParty, *webauthn.AuthenticatorOptions, []byte) {}
	for _, one := range slices.Concat(faults, []fault{{"a counter that goes back", counter}, {"a disabled passkey", honest}}) {
		refused, err := c.assert(signIn, "", func(options webauthn.AssertionOptions) (string, error) {
			party, changed := c.party(), authenticator
			credential.Counter += 10
			one.change(&party, &changed.Options, options.Challenge)
			return webauthn.CreateAssertionResponse(party, changed, *credential, options), nil
		})
		if err != nil {
			return err
		}
		r.answered(fmt.Sprintf("%s: sign-in, %s", kind.name, one.name), refused, 401, "INVALID_ASSERTION")
	}
	return nil
}

// judgeBackedUp adds a passkey that is synchronised between devices, whose counter stays 0.
func judgeBackedUp(r *report, c *client) error {
	credential := newCredential(webauthn.KeyTypeEC2)
	authenticator := webauthn.NewAuthenticatorWithOptions(webauthn.AuthenticatorOptions{BackupEligible: true, BackupState: true})
	added, err := c.register(func(options webauthn.AttestationOptions) string {
		authenticator.Options.UserHandle = []byte(options.UserID)
		return webauthn.CreateAttestationResponse(c.party(), authenticator, credential, options)
	})
	if err != nil {
		return err
	}
	r.answered("synchronised: it is added", added, 201, "")
	for range 2 {
		signedIn, err := c.assert(signIn, "", func(options webauthn.AssertionOptions) (string, error) {
			return webauthn.CreateAssertionResponse(c.party(), authenticator, credential, options), nil
		})
		if err != nil {
			return err
		}
		r.answered("synchronised: it signs in without a counter", signedIn, 200, "")
	}
	listed, err := c.expect(200, "GET", "/api/passkey/credentials", nil)
	if err != nil {
		return err
	}
	found := map[string]int{}
	for _, one := range listed.Credentials {
		found[one.Status+" "+one.DeviceType]++
	}
	r.outcome("the list has what became of the passkeys", found["Disabled singleDevice"] == 2 && found["Active multiDevice"] == 1 && len(found) == 2, found)
	return nil
}
