import {
  byId,
  call,
  create,
  createPasskey,
  destination,
  keepSession,
  knowsPasskeys,
  onClick,
  onSubmit,
  refusalOf,
  takeFragment,
  tell,
  textOf,
  usePasskey,
} from './page.js';

const sections = {
  'sign-in': 'Sign in',
  'second-step': 'Confirm that it is you',
  register: 'Register',
  forgotten: 'Forgotten password',
};
const methodNames = {
  passkey: 'a passkey',
  totp: 'an authenticator app',
  backup: 'a backup code',
  sms: 'a code by text message',
  email: 'a code by e-mail',
};
const reasons = {
  'pairing-resumption': 'Sign in to go on with your new device.',
  'resumption-expired': 'The link has expired or was used. Sign in and start again.',
};

let loginToken;

function show(id) {
  for (const [section, heading] of Object.entries(sections)) {
    byId(section).hidden = section !== id;
    if (section === id) byId('heading').textContent = heading;
  }
  byId('heading').focus();
}

async function enter(tokens) {
  keepSession(tokens);
  const { url, isForeign } = await destination();
  const fragment = new URLSearchParams({
    token: tokens.access_token,
    refresh: tokens.refresh_token,
    expires_in: String(tokens.expires_in),
  });
  location.assign(isForeign ? `${url}#${fragment}` : url);
}

function returnTo() {
  const query = new URLSearchParams(location.search);
  return query.get('returnUrl') ?? query.get('returnTo') ?? undefined;
}

async function conclude(answer) {
  if (!answer.ok) return tell(textOf(answer), 'fault');
  if (answer.body.requires_two_factor === true) return askSecondFactor(answer.body);
  return enter(answer.body);
}

function askSecondFactor({ login_token, available_methods }) {
  loginToken = login_token;
  const offered = available_methods.includes('totp') ? [...available_methods, 'backup'] : available_methods;
  const usable = offered.filter((method) => method !== 'passkey' || knowsPasskeys());
  byId('method').replaceChildren(
    ...usable.map((method) => create('option', { value: method }, methodNames[method] ?? method)),
  );
  tell('');
  show('second-step');
  showMethod();
}

function showMethod() {
  const method = byId('method').value;
  const isSent = method === 'email' || method === 'sms';
  byId('send-code').hidden = !isSent;
  byId('code-field').hidden = method === 'passkey';
  byId('code').required = method !== 'passkey';
}

async function sendCode() {
  const answer = await call('POST', `/api/auth/login/2fa/send-${byId('method').value}`, {
    login_token: loginToken,
  });
  tell(answer.ok ? 'A code is on its way.' : textOf(answer), answer.ok ? 'done' : 'fault');
}

async function confirm(form) {
  const method = form.get('method');
  if (method === 'passkey') return confirmByPasskey();
  const answer = await call('POST', '/api/auth/verify-2fa', {
    login_token: loginToken,
    code: form.get('code').trim(),
    method,
  });
  byId('code').value = '';
  return conclude(answer);
}

async function confirmByPasskey() {
  const begun = await call('POST', '/api/auth/verify-passkey/options', { login_token: loginToken });
  if (!begun.ok) return tell(textOf(begun), 'fault');
  const { transaction_id, options } = begun.body;
  const assertion_response = await usePasskey(options);
  return conclude(
    await call('POST', '/api/auth/verify-passkey', {
      login_token: loginToken,
      transaction_id,
      assertion_response,
    }),
  );
}

async function signInByPasskey() {
  const begun = await call('POST', '/api/auth/passkey/assertion/options', {});
  if (!begun.ok) return tell(textOf(begun), 'fault');
  const { transaction_id, options } = begun.body;
  const assertion_response = await usePasskey(options);
  const answer = await call('POST', '/api/auth/passkey/assertion/verify', {
    transaction_id,
    assertion_response,
  });
  if (answer.body?.code === 'UNKNOWN_CREDENTIAL') {
    await PublicKeyCredential.signalUnknownCredential?.({
      rpId: options.rpId,
      credentialId: assertion_response.id,
    });
  }
  return conclude(answer);
}

async function register(form) {
  const answer = await call('POST', '/api/auth/register', {
    orgSubdomain: organization() ?? 'public',
    displayName: form.get('displayName'),
    email: form.get('email'),
    password: form.get('password'),
  });
  if (!answer.ok) return tell(textOf(answer), 'fault');
  byId('email').value = form.get('email');
  show('sign-in');
  tell('Open the mail that we have sent, and confirm your address. You can sign in already.');
}

async function registerByPasskey() {
  const form = byId('register-form');
  const displayName = form.displayName.value.trim();
  if (displayName === '') {
    form.displayName.focus();
    return tell('Enter your name first.', 'fault');
  }
  const email = form.email.value.trim();
  const begun = await call('POST', '/api/auth/public/passkey/register/options', {
    display_name: displayName,
    ...(email === '' ? {} : { email }),
  });
  if (!begun.ok) return tell(textOf(begun), 'fault');
  const { transaction_id, options } = begun.body;
  const attestation_response = await createPasskey(options);
  return conclude(
    await call('POST', '/api/auth/public/passkey/register/verify', { transaction_id, attestation_response }),
  );
}

async function forgot(form) {
  const answer = await call('POST', '/api/auth/password/forgot', { email: form.get('email') });
  if (!answer.ok) return tell(textOf(answer), 'fault');
  show('sign-in');
  tell('If the address has an account, a mail with a link is on its way. The link holds for one hour.');
}

function organization() {
  const text = byId('organization').value.trim();
  return text === '' ? undefined : text;
}

async function signInByProvider(provider) {
  const answer = await call('POST', '/api/auth/public/social/initiate', { provider, returnUrl: returnTo() });
  if (!answer.ok) return tell(textOf(answer), 'fault');
  location.assign(answer.body.authorizationUrl);
}

async function signInByOrganization() {
  const orgSubdomain = organization();
  if (orgSubdomain === undefined) {
    byId('organization').focus();
    return tell('Enter the subdomain of the organisation.', 'fault');
  }
  const redirectUrl = returnTo() ?? '/app/';
  const answer = await call('POST', '/api/auth/oidc/initiate', { orgSubdomain, redirectUrl });
  if (!answer.ok) return tell(textOf(answer), 'fault');
  location.assign(answer.body.authorizationUrl);
}

async function listProviders() {
  const answer = await call('GET', '/api/auth/social/providers');
  const providers = answer.ok ? answer.body.providers : [];
  byId('providers').replaceChildren(
    ...providers.map((provider) => {
      const button = create('button', { type: 'button' }, `Sign in with ${provider}`);
      onClick(button, () => signInByProvider(provider));
      return button;
    }),
  );
}

onSubmit(byId('password-form'), async (form) =>
  conclude(
    await call('POST', '/api/auth/login', {
      email: form.get('email'),
      password: form.get('password'),
      organizationSubdomain: organization(),
      returnTo: returnTo(),
    }),
  ),
);
onSubmit(byId('code-form'), confirm);
onSubmit(byId('register-form'), register);
onSubmit(byId('forgot-form'), forgot);
onClick(byId('send-code'), sendCode);
onClick(byId('passkey'), signInByPasskey);
onClick(byId('organization-sign-in'), signInByOrganization);
onClick(byId('register-passkey'), registerByPasskey);
byId('method').addEventListener('change', showMethod);
byId('to-register').addEventListener('click', () => show('register'));
byId('forgot').addEventListener('click', () => show('forgotten'));
for (const button of document.querySelectorAll('.back')) {
  button.addEventListener('click', () => {
    tell('');
    show('sign-in');
  });
}

const query = new URLSearchParams(location.search);
byId('email').value = query.get('email') ?? '';
byId('organization').value = query.get('organization') ?? '';
if (reasons[query.get('reason')] !== undefined) tell(reasons[query.get('reason')]);
if (query.get('authError') !== null) tell(refusalOf(query.get('authError')), 'fault');
byId('passkey').hidden = !knowsPasskeys();
byId('register-passkey').hidden = !knowsPasskeys();
await listProviders();
// The identity provider of the organisation is the first step; the account wants a second one.
const fragment = takeFragment();
if (fragment.get('login_token') !== null) {
  const available_methods = (fragment.get('available_methods') ?? '').split(' ');
  askSecondFactor({ login_token: fragment.get('login_token'), available_methods });
}
