import { byId, call, onSubmit, takeFragment, tell, textOf } from './page.js';

const token = takeFragment().get('token');
const form = byId('reset-form');

async function reset(fields) {
  const newPassword = fields.get('password');
  if (newPassword !== fields.get('again')) return tell('The two passwords differ.', 'fault');
  const answer = await call('POST', '/api/auth/password/reset', { token, newPassword });
  if (!answer.ok) return tell(textOf(answer), 'fault');
  form.reset();
  form.hidden = true;
  return tell('The password is set. Sign in with it.');
}

form.hidden = token === null;
if (token === null) tell('The link is incomplete: copy the whole address from the mail.', 'fault');
onSubmit(form, reset);
