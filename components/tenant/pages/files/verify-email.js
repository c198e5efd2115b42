import { byId, call, onClick, takeFragment, tell, textOf } from './page.js';

const parameters = takeFragment();
const token = parameters.get('token');
const disown = parameters.get('disown');

async function use(path, value, section) {
  const answer = await call('POST', path, { token: value });
  if (answer.ok) section.hidden = true;
  tell(answer.ok ? (answer.body?.message ?? 'Done.') : textOf(answer), answer.ok ? 'done' : 'fault');
}

byId('confirming').hidden = token === null;
byId('disowning').hidden = disown === null;
if (token === null && disown === null)
  tell('The link is incomplete: copy the whole address from the mail.', 'fault');
onClick(byId('confirm'), () => use('/api/auth/verify-email', token, byId('confirming')));
onClick(byId('disown'), () => use('/api/auth/register/disown', disown, byId('disowning')));
