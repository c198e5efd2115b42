import { byId, call, currentSession, tell, textOf, usePasskey } from './page.js';

/** Calls the API as the person of this tab; without a session the sign-in page opens. */
export async function request(method, path, body, headers) {
  const session = await currentSession();
  if (session === undefined) {
    location.assign('/auth/login?returnUrl=/app/');
    return new Promise(() => undefined);
  }
  return call(method, path, body, { token: session.accessToken, headers });
}

/**
 * Calls an operation that wants a recent proof; asks the person for one when the server does, and repeats it with the
 * token that the proof gave.
 * @param wanted the operation by its name, and the kind of method that it concerns
 */
export async function operate([method, path, body], wanted) {
  const answer = await request(method, path, body);
  if (answer.status !== 401 || answer.body?.code !== 'insufficient_user_authentication') return answer;
  const token = await prove(ofSession(wanted));
  return token === undefined ? answer : request(method, path, body, { 'x-auth-challenge': token });
}

/** The two requests of a proof for an operation of the session. */
export const ofSession = (wanted) => ({
  kept: { wanted },
  initiate: (preferredMethod) =>
    request('POST', '/api/auth/challenge/initiate', { ...wanted, preferredMethod }),
  verify: (method, proof) => request('POST', '/api/auth/challenge/verify', { ...wanted, method, proof }),
});

/** The same for connecting an account before a session exists. */
export const ofLink = (linkPendingToken) => ({
  kept: { linkPendingToken },
  initiate: (preferredMethod) =>
    call('POST', '/api/auth/social/link/challenge/initiate', { linkPendingToken, preferredMethod }),
  verify: (method, proof) =>
    call('POST', '/api/auth/social/link/challenge/verify', { linkPendingToken, method, proof }),
});

export const proofKey = 'chancery.proof';
const proofMethods = ['Totp', 'Passkey', 'Password', 'EmailOtp', 'SmsOtp', 'ReOAuth'];
const proofs = {
  Totp: { label: 'Code of the authenticator app', type: 'text', proofOf: (code) => ({ code }) },
  Password: { label: 'Password', type: 'password', proofOf: (password) => ({ password }) },
  EmailOtp: { label: 'Code of the mail', type: 'text', proofOf: (code) => ({ code }) },
  SmsOtp: { label: 'Code of the text message', type: 'text', proofOf: (code) => ({ code }) },
};

/** Asks for a proof. @returns the challenge token; undefined when the person went back */
export function prove(requests) {
  const { promise, resolve } = Promise.withResolvers();
  const tried = [];
  let current;
  const end = (token) => {
    byId('proof').hidden = true;
    byId('account').hidden = false;
    resolve(token);
  };

  async function begin(preferredMethod) {
    const answer = await requests.initiate(preferredMethod);
    if (!answer.ok) {
      tell(textOf(answer), 'fault');
      end(undefined);
      return;
    }
    current = answer.body;
    tried.push(current.method);
    showProof(current);
  }

  async function verify() {
    const { method, payload } = current;
    if (method === 'ReOAuth') {
      sessionStorage.setItem(proofKey, JSON.stringify(requests.kept));
      location.assign(payload.authorizationUrl);
      return;
    }
    const answer = await requests.verify(method, await proofOf(current));
    if (answer.ok) end(answer.body.token);
    else tell(textOf(answer), 'fault');
  }

  byId('account').hidden = true;
  byId('proof').hidden = false;
  byId('proof-form').onsubmit = (event) => {
    event.preventDefault();
    verify().catch(() => tell('The browser ended the request.', 'fault'));
  };
  byId('proof-other').onclick = () => begin(proofMethods.find((one) => !tried.includes(one)));
  byId('proof-back').onclick = () => end(undefined);
  void begin();
  return promise;
}

function showProof({ method, payload }) {
  const field = proofs[method];
  byId('proof-field').hidden = field === undefined;
  byId('proof-hint').textContent = method === 'ReOAuth' ? `Sign in again at ${payload.provider}.` : '';
  tell('');
  if (field === undefined) return;
  byId('proof-label').textContent = field.label;
  Object.assign(byId('proof-code'), { type: field.type, value: '' }).focus();
}

async function proofOf({ method, payload }) {
  if (method !== 'Passkey') return proofs[method].proofOf(byId('proof-code').value.trim());
  const assertionResponse = await usePasskey(payload.assertionOptions);
  return { transactionId: payload.transactionId, assertionResponse };
}
