import {
  byId,
  call,
  create,
  currentSession,
  keepSession,
  refusalOf,
  takeFragment,
  tell,
  textOf,
} from './page.js';

const fragment = takeFragment();
const authError = new URLSearchParams(location.search).get('authError');
if (fragment.get('token') !== null) {
  keepSession({
    accessToken: fragment.get('token'),
    refreshToken: fragment.get('refresh'),
    expiresIn: Number(fragment.get('expires_in')),
  });
}

async function show() {
  const session = await currentSession();
  if (session === undefined) {
    if (authError === null) tell('You are not signed in.');
    return;
  }
  const token = session.accessToken;
  const [me, wallets] = [
    await call('GET', '/api/auth/me', undefined, { token }),
    await call('GET', '/api/v1/wallets', undefined, { token }),
  ];
  if (!me.ok) {
    tell(textOf(me), 'fault');
    return;
  }
  byId('who').textContent = `Signed in as ${me.body.displayName ?? me.body.email ?? me.body.userId}.`;
  const found = wallets.ok ? (wallets.body.items ?? wallets.body.wallets ?? []) : [];
  byId('wallets').replaceChildren(
    ...found.map(({ name, address }) =>
      create('li', {}, create('p', {}, name ?? 'Wallet'), create('code', {}, address)),
    ),
  );
}

if (authError !== null)
  tell(refusalOf(authError === 'no_account' ? 'NoExistingAccount' : authError), 'fault');
await show();
