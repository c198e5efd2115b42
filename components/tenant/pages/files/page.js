/**
 * What the pages share: calls of the API, the session of this tab, and small helpers for the document. Nothing of it
 * builds markup from text.
 */

const sessionKey = 'chancery.session';

/** The element with this id. */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element ${id}`);
  return found;
}

/** Creates an element; properties are set as such, children are texts or elements. */
export function create(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Tells the person what happened; assistive technology reads it out. */
export function tell(text, kind = 'done') {
  const status = byId('status');
  status.className = kind;
  status.textContent = text;
}

/** What a refusal says, for a person. */
export function textOf(answer) {
  const { body, status } = answer;
  const faults = Object.values(body?.errors ?? {}).flat();
  const reason = body?.error ?? body?.detail ?? body?.error_description ?? body?.message;
  return [
    reason ?? `The server answered ${status}.`,
    ...faults.map((fault) => passwordFaults[fault] ?? fault),
  ].join(' ');
}

const passwordFaults = {
  too_short: 'It is too short.',
  too_long: 'It is too long.',
  unchanged: 'It is the present one.',
  breached: 'It is one of the passwords that attackers try first.',
  contextual: 'It is made of words that belong to the account.',
};

/**
 * Calls the API of this origin with JSON.
 * @returns status, body (undefined when there is none) and the number of seconds of `Retry-After`
 */
export async function call(method, path, body, { token, headers = {} } = {}) {
  const answer = await fetch(path, {
    method,
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: 'same-origin',
    referrerPolicy: 'no-referrer',
  });
  const text = await answer.text();
  return {
    status: answer.status,
    ok: answer.ok,
    body: parse(text),
    retryAfter: answer.headers.get('retry-after'),
  };
}

function parse(text) {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Keeps the tokens in this tab until it is closed. */
export function keepSession(answer) {
  const {
    access_token: accessToken = answer.accessToken,
    refresh_token: refreshToken = answer.refreshToken,
  } = answer;
  const expiresIn = answer.expires_in ?? answer.expiresIn;
  const session = { accessToken, refreshToken, expiresAt: Date.now() + expiresIn * 1000 };
  sessionStorage.setItem(sessionKey, JSON.stringify(session));
  return session;
}

export function endSession() {
  sessionStorage.removeItem(sessionKey);
}

/** The session of this tab, renewed when its token ends within a minute; undefined when there is none. */
export async function currentSession() {
  const kept = parse(sessionStorage.getItem(sessionKey) ?? '');
  if (kept === undefined || kept.expiresAt - Date.now() > 60_000) return kept;
  return renewSession(kept);
}

/** Exchanges the tokens of this tab; the new ones say what is true now. @returns undefined when the session has ended */
export async function renewSession(kept = parse(sessionStorage.getItem(sessionKey) ?? '')) {
  const answer = await call('POST', '/api/auth/token/refresh', { refreshToken: kept.refreshToken });
  if (answer.ok) return keepSession(answer.body);
  endSession();
  return undefined;
}

/** The parameters behind `#`, which are removed from the address so that the history does not keep them. */
export function takeFragment() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
  return parameters;
}

const refusals = {
  access_denied: 'The sign-in was declined at the provider.',
  PROVIDER_REFUSED: 'The answer of the provider was not accepted. Try again.',
  ProviderUnverified: 'The provider has not verified your e-mail address.',
  ExistingUnverified: 'An account with your e-mail address waits for its confirmation: open its mail first.',
  NoExistingAccount: 'This identity has no account here. Register first.',
  PUBLIC_ORG_DISABLED: 'This installation takes no new accounts.',
  REGISTRATION_CLOSED: 'This installation takes no new accounts.',
  NOT_A_MEMBER: 'The account is not active.',
};

/** Why a sign-in by a provider was refused, for a person. */
export function refusalOf(code) {
  return refusals[code] ?? 'The sign-in was refused.';
}

/** Runs an action for a button or form: one at a time, with its failures told. */
export async function run(control, action) {
  if (control.disabled) return;
  control.disabled = true;
  try {
    await action();
  } catch (error) {
    tell(
      error instanceof DOMException ? 'The browser ended the request.' : 'The server cannot be reached.',
      'fault',
    );
    reportError(error);
  } finally {
    control.disabled = false;
  }
}

/** Runs an action when a form is submitted, by key or by button. */
export function onSubmit(form, action) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const control = form.querySelector('button[type=submit]');
    void run(control, () => action(new FormData(form)));
  });
}

export function onClick(button, action) {
  button.addEventListener('click', () => run(button, action));
}

/** Whether this browser can make and use passkeys with the API's JSON. */
export function knowsPasskeys() {
  return typeof PublicKeyCredential?.parseRequestOptionsFromJSON === 'function';
}

export async function createPasskey(options) {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const credential = await navigator.credentials.create({ publicKey });
  return credential.toJSON();
}

export async function usePasskey(options) {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const credential = await navigator.credentials.get({ publicKey });
  return credential.toJSON();
}

/**
 * Where a sign-in leads: a path of this origin, or an address that the operator allows; `/app/` otherwise.
 * @returns the address and whether it is of another origin
 */
export async function destination() {
  const query = new URLSearchParams(location.search);
  const asked = query.get('returnUrl') ?? query.get('returnTo');
  const fallback = { url: '/app/', isForeign: false };
  if (asked === null) return fallback;
  const answer = await call('GET', `/api/auth/return-to?url=${encodeURIComponent(asked)}`);
  return answer.ok && answer.body.allowed
    ? { url: answer.body.url, isForeign: answer.body.foreign }
    : fallback;
}
