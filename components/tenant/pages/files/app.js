import {
  byId,
  call,
  create,
  createPasskey,
  currentSession,
  endSession,
  keepSession,
  knowsPasskeys,
  onClick,
  onSubmit,
  refusalOf,
  renewSession,
  takeFragment,
  tell,
  textOf,
} from './page.js';
import { ofLink, ofSession, operate, proofKey, prove, request } from './proof.js';

const fragment = takeFragment();
if (fragment.get('token') !== null) {
  keepSession({
    accessToken: fragment.get('token'),
    refreshToken: fragment.get('refresh'),
    expiresIn: Number(fragment.get('expires_in')),
  });
}

/** The path of `POST …/verify` that confirms the code which was sent last. */
let channel;

/** Goes on after a provider has signed the person in again: with the proof, or with the new connection. */
async function returnFromProvider(outcome) {
  const { provider, code, state, iss } = Object.fromEntries(fragment);
  if (outcome === 'Link') {
    const linked = await request('POST', '/api/auth/public/social/link', { provider, code, state, iss });
    tell(linked.ok ? 'The accounts are connected.' : textOf(linked), linked.ok ? 'done' : 'fault');
    return;
  }
  const { wanted, linkPendingToken } = JSON.parse(sessionStorage.getItem(proofKey) ?? '{}');
  sessionStorage.removeItem(proofKey);
  const requests = linkPendingToken === undefined ? ofSession(wanted) : ofLink(linkPendingToken);
  const answer = await requests.verify('ReOAuth', { provider, code, state, iss });
  if (!answer.ok) tell(textOf(answer), 'fault');
  else if (linkPendingToken === undefined) tell('Confirmed. Repeat what you wanted to do.');
  else await confirmLink(linkPendingToken, answer.body.token);
}

const when = (text) => (text == null ? 'never' : new Date(text).toLocaleString());

function row(title, detail, removal) {
  const item = create('li', {}, create('p', {}, create('strong', {}, title)), create('p', {}, detail));
  if (removal !== undefined) {
    const button = create('button', { type: 'button', className: 'plain' }, 'Remove');
    button.setAttribute('aria-label', `Remove ${title}`);
    onClick(button, async () => after(await removal(), 'Removed.'));
    item.append(button);
  }
  return item;
}

/** Tells the result of an operation and shows the account as it is now. */
async function after(answer, text) {
  tell(answer.ok ? text : textOf(answer), answer.ok ? 'done' : 'fault');
  if (answer.ok) await refresh();
}

function showMethods({ email, emailVerified, password, socials, passkeys }) {
  const remove = (path, kind) => () =>
    operate(['DELETE', path, undefined], { scopedOperation: 'RemoveAuthMethod', targetMethodKind: kind });
  const rows = [];
  if (password.isSet) {
    const removal = () =>
      operate(['POST', '/api/auth/password/remove', {}], { scopedOperation: 'RemovePassword' });
    rows.push(
      row('Password', `Changed: ${when(password.lastChangedAt)}`, password.canRemove ? removal : undefined),
    );
  }
  for (const key of passkeys) {
    const detail = `${key.status}, last used: ${when(key.lastUsedAt)}`;
    rows.push(
      row(
        key.displayName,
        detail,
        key.canRemove ? remove(`/api/passkey/credentials/${key.id}`, 'Passkey') : undefined,
      ),
    );
  }
  for (const link of socials) {
    const detail = `${link.email ?? ''} last used: ${when(link.lastUsedAt)}`;
    const removal = remove(`/api/auth/public/social/${link.linkId}`, 'Social');
    rows.push(row(link.provider, detail, link.canRemove ? removal : undefined));
  }
  byId('methods').replaceChildren(...rows);
  byId('who').textContent =
    email == null ? 'No e-mail address' : `${email} (${emailVerified ? 'confirmed' : 'not confirmed yet'})`;
  byId('password-form').dataset.isSet = String(password.isSet);
}

function showChannels({ totp, emailOtpEnabled, smsAvailable, smsOtpEnabled }) {
  byId('totp-state').textContent = totp.isEnabled
    ? `On since ${when(totp.verifiedAt)}; ${totp.backupCodesRemaining} backup codes left.`
    : 'Off.';
  byId('totp-start').hidden = totp.isEnabled;
  byId('totp-end').hidden = !totp.isEnabled;
  byId('email-codes').textContent = emailOtpEnabled
    ? 'Switch codes by e-mail off'
    : 'Switch codes by e-mail on';
  byId('email-codes').dataset.on = String(emailOtpEnabled);
  byId('sms-codes').hidden = !smsAvailable;
  byId('sms-codes').textContent = smsOtpEnabled
    ? 'Switch codes by text message off'
    : 'Switch codes by text message on';
  byId('sms-codes').dataset.on = String(smsOtpEnabled);
}

function showSessions(sessions) {
  byId('sessions').replaceChildren(
    ...sessions.map((session) =>
      row(
        session.isCurrent ? 'This session' : `Session since ${when(session.createdAt)}`,
        `${session.methods.join(', ')}; last renewed: ${when(session.lastUsedAt)}`,
        () => request('DELETE', `/api/me/sessions/${session.id}`),
      ),
    ),
  );
}

async function refresh() {
  const [methods, sessions] = [
    await request('GET', '/api/me/auth-methods'),
    await request('GET', '/api/me/sessions'),
  ];
  if (methods.status === 401) {
    endSession();
    location.assign('/auth/login?returnUrl=/app/');
    return;
  }
  if (methods.body?.code === 'PROFILE_INCOMPLETE') {
    byId('profile').hidden = false;
    byId('profile-name').focus();
    tell('Your organisation tells too little about you.');
    return;
  }
  byId('account').hidden = false;
  if (methods.ok) {
    showMethods(methods.body);
    showChannels(methods.body);
  }
  if (sessions.ok) showSessions(sessions.body.sessions);
}

function drawCode(rows) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const margin = 4;
  const size = rows.length + 2 * margin;
  svg.setAttribute('viewBox', `0 0 ${size} ${size}`);
  svg.setAttribute('class', 'code');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', 'QR code of the key below');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  const squares = rows.flatMap((text, y) =>
    [...text].flatMap((module, x) => (module === '1' ? [`M${x + margin} ${y + margin}h1v1h-1z`] : [])),
  );
  path.setAttribute('d', squares.join(''));
  path.setAttribute('fill', 'currentColor');
  svg.append(path);
  return svg;
}

async function setUpTotp() {
  const answer = await request('POST', '/api/totp/setup', {});
  if (!answer.ok) return tell(textOf(answer), 'fault');
  const { secret, qrCode, backupCodes } = answer.body;
  byId('totp-secret').textContent = secret;
  byId('totp-picture').replaceChildren(drawCode(qrCode));
  byId('totp-codes').replaceChildren(...backupCodes.map((code) => create('li', {}, code)));
  byId('totp-setup').hidden = false;
  byId('totp-code').focus();
}

async function verifyTotp(form) {
  const answer = await request('POST', '/api/totp/verify', { code: form.get('code').trim() });
  byId('totp-code').value = '';
  if (answer.ok) byId('totp-setup').hidden = true;
  await after(answer, 'The authenticator app is on.');
}

async function addPasskey() {
  const named = { display_name: 'Passkey of this device' };
  const begun = await request('POST', '/api/auth/public/passkey/add/options', named);
  if (!begun.ok) return tell(textOf(begun), 'fault');
  const { transaction_id, options } = begun.body;
  const attestation_response = await createPasskey(options);
  const body = { transaction_id, attestation_response };
  await after(await request('POST', '/api/auth/public/passkey/add/verify', body), 'The passkey is added.');
}

async function setPassword(form) {
  const isSet = byId('password-form').dataset.isSet === 'true';
  const [path, operation] = isSet ? ['change', 'ChangePassword'] : ['set', 'SetPassword'];
  const body = { password: form.get('password') };
  const answer = await operate(['POST', `/api/auth/password/${path}`, body], { scopedOperation: operation });
  byId('password-form').reset();
  if (answer.ok) await renewSession();
  await after(answer, 'The password is set.');
}

async function toggleEmailCodes() {
  if (byId('email-codes').dataset.on === 'true') {
    const answer = await operate(['DELETE', '/api/me/2fa/email', undefined], {
      scopedOperation: 'Disable2Fa',
    });
    return after(answer, 'Codes by e-mail are off.');
  }
  const answer = await request('POST', '/api/me/2fa/email/enable', {});
  return expectCode(answer, '/api/me/2fa/email/verify');
}

async function toggleSmsCodes() {
  if (byId('sms-codes').dataset.on === 'true') {
    const answer = await operate(['DELETE', '/api/me/2fa/sms', undefined], { scopedOperation: 'Disable2Fa' });
    return after(answer, 'Codes by text message are off.');
  }
  const answer = await request('POST', '/api/me/2fa/sms/enable', {});
  if (answer.status !== 409) return after(answer, 'Codes by text message are on.');
  byId('phone-form').hidden = false;
  byId('phone').focus();
}

function expectCode(answer, path) {
  if (!answer.ok) return tell(textOf(answer), 'fault');
  channel = path;
  byId('channel-form').hidden = false;
  byId('channel-code').focus();
  return tell('A code is on its way.');
}

async function confirmChannel(form) {
  const answer = await request('POST', channel, { code: form.get('code').trim() });
  if (answer.ok) byId('channel-form').hidden = true;
  if (answer.ok && channel.includes('phone')) {
    byId('phone-form').hidden = true;
    return after(await request('POST', '/api/me/2fa/sms/enable', {}), 'Codes by text message are on.');
  }
  return after(answer, 'Codes by e-mail are on.');
}

async function completeProfile(form) {
  const profile = { displayName: form.get('displayName'), email: form.get('email') };
  const answer = await request('POST', '/api/auth/oidc/complete-profile', profile);
  if (!answer.ok) return tell(textOf(answer), 'fault');
  keepSession(answer.body);
  byId('profile').hidden = true;
  tell('The profile is complete. Confirm the address by the link in the mail.');
  return refresh();
}

async function signOut() {
  await request('POST', '/api/auth/logout');
  endSession();
  location.assign('/auth/login');
}

/** Connects the social account of a sign-in that met an account with its address. */
async function connect(linkPendingToken) {
  const token = await prove(ofLink(linkPendingToken));
  if (token !== undefined) await confirmLink(linkPendingToken, token);
}

async function confirmLink(linkPendingToken, token) {
  const headers = { 'x-auth-challenge': token };
  const confirmed = await call('POST', '/api/auth/social/link/confirm', { linkPendingToken }, { headers });
  if (!confirmed.ok) {
    tell(textOf(confirmed), 'fault');
    return;
  }
  keepSession(confirmed.body);
  byId('link').hidden = true;
  tell('The accounts are connected.');
  await refresh();
}

async function linkProvider(provider) {
  const answer = await operate(['POST', '/api/auth/public/social/link', { provider }], {
    scopedOperation: 'LinkSocial',
    targetMethodKind: 'Social',
  });
  if (!answer.ok) return tell(textOf(answer), 'fault');
  location.assign(answer.body.authorizationUrl);
}

async function listProviders() {
  const answer = await call('GET', '/api/auth/social/providers');
  const buttons = (answer.ok ? answer.body.providers : []).map((provider) => {
    const button = create('button', { type: 'button', className: 'plain' }, `Connect ${provider}`);
    onClick(button, () => linkProvider(provider));
    return button;
  });
  byId('add-social').replaceChildren(...buttons);
}

onClick(byId('sign-out'), signOut);
onClick(byId('totp-start'), setUpTotp);
onClick(byId('totp-end'), async () =>
  after(
    await operate(['DELETE', '/api/totp', undefined], { scopedOperation: 'Disable2Fa' }),
    'The authenticator app is off.',
  ),
);
onClick(byId('add-passkey'), addPasskey);
onClick(byId('email-codes'), toggleEmailCodes);
onClick(byId('sms-codes'), toggleSmsCodes);
onSubmit(byId('totp-form'), verifyTotp);
onSubmit(byId('profile-form'), completeProfile);
onSubmit(byId('password-form'), setPassword);
onSubmit(byId('phone-form'), async (form) =>
  expectCode(
    await request('POST', '/api/me/2fa/sms/phone', { phone: form.get('phone').trim() }),
    '/api/me/2fa/sms/phone/verify',
  ),
);
onSubmit(byId('channel-form'), confirmChannel);

byId('add-passkey').hidden = !knowsPasskeys();
const outcome = fragment.get('outcome');
const isRefused = outcome === 'Error' && (await currentSession()) === undefined;
if (isRefused) {
  const query = new URLSearchParams({ returnUrl: '/app/', authError: fragment.get('code') ?? '' });
  location.assign(`/auth/login?${query}`);
} else if (outcome === 'LinkRequired') {
  byId('account').hidden = false;
  byId('link').hidden = false;
  onClick(byId('link-start'), () => connect(fragment.get('linkPendingToken')));
} else {
  await listProviders();
  await refresh();
  if (outcome === 'Error') tell(refusalOf(fragment.get('code')), 'fault');
  if (outcome === 'Link' || outcome === 'ReOAuth') await returnFromProvider(outcome);
}
