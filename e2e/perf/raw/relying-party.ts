import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client';

/**
 * The minimum of a sign-in by an OpenID provider: openid-client alone, which verifies the signature of the ID token. Told an empty
 * text it says where the browser goes; told where the browser came back to, it ends the sign-in. Settings: {issuer, clientId,
 * clientSecret, redirectUri}.
 */
const { issuer, clientId, clientSecret, redirectUri } = JSON.parse(process.argv[2] ?? '{}');
const config = await discovery(new URL(issuer), clientId, clientSecret, undefined, {
  execute: [allowInsecureRequests, enableNonRepudiationChecks],
});
let checks = { pkceCodeVerifier: '', expectedState: '', expectedNonce: '' };

async function begin(): Promise<string> {
  checks = {
    pkceCodeVerifier: randomPKCECodeVerifier(),
    expectedState: randomState(),
    expectedNonce: randomNonce(),
  };
  const url = buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: 'openid email profile',
    code_challenge: await calculatePKCECodeChallenge(checks.pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: checks.expectedState,
    nonce: checks.expectedNonce,
  });
  return url.href;
}

async function end(back: string): Promise<string> {
  const tokens = await authorizationCodeGrant(config, new URL(back), { ...checks, idTokenExpected: true });
  const claims = tokens.claims();
  await fetchUserInfo(config, tokens.access_token, claims?.sub ?? '');
  return claims?.sub ?? '';
}

process.on('message', (message) => {
  const told = String(message);
  void (told === '' ? begin() : end(told)).then((answer) => process.send?.(answer));
});
process.send?.('ready');
