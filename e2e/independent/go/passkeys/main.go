// Command passkeys registers passkeys of descope/virtualwebauthn with an installation and signs in with them: keys of
// both its kinds, discoverable and as second factor. Answers with one fault each must be refused.
//
//	go run ./passkeys < input.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Input names an installation and an account of a person, which gets the passkeys.
type Input struct {
	GatewayURL string `json:"gatewayUrl"`
	Origin     string `json:"origin"`
	Email      string `json:"email"`
	Password   string `json:"password"`
}

// answer of the REST interface: the status and the members that this program reads.
type answer struct {
	status int
	Code   string `json:"code"`

	AccessToken string   `json:"access_token"`
	LoginToken  string   `json:"login_token"`
	Methods     []string `json:"available_methods"`

	Transaction string          `json:"transaction_id"`
	Options     json.RawMessage `json:"options"`

	Credentials []struct {
		DeviceType string `json:"device_type"`
		Status     string `json:"status"`
	} `json:"credentials"`
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.Code) }

// client calls the REST interface; Token is of the signed-in person.
type client struct {
	input Input
	token string
	http  http.Client
}

func (c *client) send(method, path string, body any) (answer, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, c.input.GatewayURL+path, content)
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	found := answer{status: response.StatusCode}
	if len(text) > 0 {
		err = json.Unmarshal(text, &found)
	}
	return found, err
}

// expect is send for calls that the journey depends on.
func (c *client) expect(status int, method, path string, body any) (answer, error) {
	found, err := c.send(method, path, body)
	if err == nil && found.status != status {
		err = fmt.Errorf("%s %s answered %s, expected %d", method, path, found, status)
	}
	return found, err
}

func (c *client) login() (answer, error) {
	return c.expect(200, "POST", "/api/auth/login", map[string]string{"email": c.input.Email, "password": c.input.Password})
}

// report counts checks and prints a line for each of them.
type report struct{ passed, failed int }

func (r *report) outcome(what string, holds bool, found any) {
	if holds {
		r.passed++
		fmt.Printf("ok  %s\n", what)
		return
	}
	r.failed++
	fmt.Printf("NOT %s: %v\n", what, found)
}

// answered checks the status and the code of an answer.
func (r *report) answered(what string, found answer, status int, code string) {
	r.outcome(what, found.status == status && found.Code == code, found)
}

func run() (report, error) {
	var input Input
	var r report
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&input); err != nil {
		return r, err
	}
	c := &client{input: input, http: http.Client{Timeout: 30 * time.Second}}
	signedIn, err := c.login()
	if err != nil {
		return r, err
	}
	c.token = signedIn.AccessToken
	for _, kind := range kinds {
		if err := judgeKey(&r, c, kind); err != nil {
			return r, err
		}
	}
	return r, judgeBackedUp(&r, c)
}

func main() {
	r, err := run()
	if err != nil {
		fmt.Printf("REFUSED: %v\n", err)
		r.failed++
	}
	fmt.Printf("%d passed, %d failed\n", r.passed, r.failed)
	if r.failed > 0 || r.passed == 0 {
		os.Exit(1)
	}
}
