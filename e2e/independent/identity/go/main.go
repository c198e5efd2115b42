// Passkeys of another software authenticator, with the key types that it has, as second factor and alone.
//
//	go run . http://localhost:8080 EMAIL PASSWORD_FILE
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/descope/virtualwebauthn"
)

type object = map[string]any

// client of the REST interface; token is that of the person who is signed in.
type client struct{ base, token string }

// post answers the status and the body, whatever the status.
func (c *client) post(path string, body any) (int, object) {
	text, err := json.Marshal(body)
	must(err)
	request, err := http.NewRequest(http.MethodPost, c.base+path, bytes.NewReader(text))
	must(err)
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := http.DefaultClient.Do(request)
	must(err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(err)
	var parsed object
	if len(answer) > 0 {
		must(json.Unmarshal(answer, &parsed))
	}
	return response.StatusCode, parsed
}

// expect ends the program when the status is another one.
func (c *client) expect(status int, path string, body any) object {
	found, answer := c.post(path, body)
	if found != status {
		fmt.Printf("POST %s: %d %v, expected %d\n", path, found, answer, status)
		os.Exit(1)
	}
	return answer
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// options of a ceremony, in the form that the library parses: that of the member publicKey.
func options(begun object) (string, string) {
	text, err := json.Marshal(object{"publicKey": begun["options"]})
	must(err)
	return begun["transaction_id"].(string), string(text)
}

var passed, failed int

func check(what string, holds bool, detail any) {
	if holds {
		passed++
		fmt.Println("ok ", what)
		return
	}
	failed++
	fmt.Println("NOT", what, detail)
}

type person struct{ email, password string }

func (c *client) signIn(who person) object {
	return c.expect(200, "/api/auth/login", object{"email": who.email, "password": who.password})
}

func assertion(party virtualwebauthn.RelyingParty, device virtualwebauthn.Authenticator, key virtualwebauthn.Credential, text string) object {
	parsed, err := virtualwebauthn.ParseAssertionOptions(text)
	must(err)
	var response object
	must(json.Unmarshal([]byte(virtualwebauthn.CreateAssertionResponse(party, device, key, *parsed)), &response))
	return response
}

func try(c *client, party virtualwebauthn.RelyingParty, who person, name string, kind virtualwebauthn.KeyType) {
	device := virtualwebauthn.NewAuthenticator()
	key := virtualwebauthn.NewCredential(kind)
	transaction, text := options(c.expect(200, "/api/passkey/register/options", object{"display_name": name}))
	parsed, err := virtualwebauthn.ParseAttestationOptions(text)
	must(err)
	device.Options.UserHandle = []byte(parsed.UserID)
	var response object
	must(json.Unmarshal([]byte(virtualwebauthn.CreateAttestationResponse(party, device, key, *parsed)), &response))
	status, made := c.post("/api/passkey/register/verify", object{"transaction_id": transaction, "attestation_response": response})
	check(name+": the credential is added", status == 201 && made["status"] == "Active", made)
	device.AddCredential(key)

	stranger := &client{base: c.base}
	transaction, text = options(stranger.expect(200, "/api/auth/passkey/assertion/options", object{}))
	key.Counter++
	proof := object{"transaction_id": transaction, "assertion_response": assertion(party, device, key, text)}
	status, tokens := stranger.post("/api/auth/passkey/assertion/verify", proof)
	check(name+": it signs in alone", status == 200 && tokens["access_token"] != nil, tokens)
	status, _ = stranger.post("/api/auth/passkey/assertion/verify", proof)
	check(name+": once", status == 401, status)

	login := stranger.signIn(who)["login_token"]
	transaction, text = options(stranger.expect(200, "/api/auth/verify-passkey/options", object{"login_token": login}))
	key.Counter++
	step := object{"login_token": login, "transaction_id": transaction, "assertion_response": assertion(party, device, key, text)}
	status, tokens = stranger.post("/api/auth/verify-passkey", step)
	check(name+": it completes a sign-in", status == 200 && tokens["access_token"] != nil, tokens)

	other := virtualwebauthn.NewCredential(kind)
	other.ID = key.ID
	transaction, text = options(stranger.expect(200, "/api/auth/passkey/assertion/options", object{}))
	forged := object{"transaction_id": transaction, "assertion_response": assertion(party, device, other, text)}
	status, _ = stranger.post("/api/auth/passkey/assertion/verify", forged)
	check(name+": another key under its id is refused", status == 401, status)
}

func main() {
	if len(os.Args) != 4 {
		fmt.Println("usage: BASE_URL EMAIL PASSWORD_FILE")
		os.Exit(1)
	}
	base, err := url.Parse(os.Args[1])
	must(err)
	password, err := os.ReadFile(os.Args[3])
	must(err)
	who := person{os.Args[2], strings.TrimSpace(string(password))}
	c := &client{base: strings.TrimRight(base.String(), "/")}
	c.token = c.signIn(who)["access_token"].(string)
	party := virtualwebauthn.RelyingParty{ID: base.Hostname(), Name: "judge", Origin: base.Scheme + "://" + base.Host}
	try(c, party, who, "ES256", virtualwebauthn.KeyTypeEC2)
	try(c, party, who, "RS256", virtualwebauthn.KeyTypeRSA)
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}
