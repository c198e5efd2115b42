import type { Caller } from '#core/identity/claims.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendAuditEvent } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Account } from '../../people/accounts/account.ts';
import { findAccount, lockAccount, removePassword, setPassword } from '../../people/accounts/store.ts';
import { notifyPerson } from '../../people/inbox/notify-person.ts';
import { countFirstFactors, ownsStrongFactor } from '../../people/means/means.ts';
import { findMeans } from '../../people/means/store.ts';
import type { MessageQueue } from '../../people/messages/queue.ts';
import type { Origin } from '../../requests/origin.ts';
import { requirePerson } from '../../requests/person.ts';
import { endTokens } from '../../tokens/sessions/end-tokens.ts';
import { listFamilies } from '../../tokens/sessions/store.ts';
import { type GateDeps, requireRecentProof } from '../challenge/gate.ts';
import { findHomeOrganization } from '../lockout/store.ts';
import type { RecoverDeps } from './recover.ts';

type Tx = Transactor<TenantDatabase>;

export type OwnPasswordDeps = GateDeps &
  Pick<RecoverDeps, 'db' | 'passwords' | 'passwordPolicy' | 'notify' | 'notifyInboxes'> & {
    readonly messages: MessageQueue;
  };

interface OwnRequest {
  readonly caller: Caller;
  /** The header `X-Auth-Challenge`. */
  readonly challenge: string | undefined;
  readonly origin: Origin;
}

interface NewPassword extends OwnRequest {
  readonly password: string;
}

/**
 * Gives an account that has no password its first one.
 * @throws PASSWORD_ALREADY_SET, PASSWORD_REFUSED, insufficient_user_authentication
 */
export async function setOwnPassword(deps: OwnPasswordDeps, request: NewPassword): Promise<void> {
  const hash = await hashOf(deps, request.password);
  await act(deps, request, async (tx, account) => {
    if (account.passwordHash !== undefined) throw refusal('PASSWORD_ALREADY_SET');
    const hasOther = countFirstFactors(await findMeans(tx, account.id)) > 0;
    if (hasOther)
      await requireRecentProof(deps, tx, { ...request, operation: 'SetPassword', strength: 'basic' });
    await setPassword(tx, account.id, { hash, atMs: deps.clock.nowMs() });
    return 'set';
  });
}

/**
 * Replaces the password; every other session of the account ends.
 * @throws PASSWORD_NOT_SET, PASSWORD_REFUSED, insufficient_user_authentication
 */
export async function changeOwnPassword(deps: OwnPasswordDeps, request: NewPassword): Promise<void> {
  await assertReplaces(deps, request);
  const hash = await hashOf(deps, request.password);
  await act(deps, request, async (tx, account) => {
    if (account.passwordHash === undefined) throw refusal('PASSWORD_NOT_SET');
    await requireRecentProof(deps, tx, { ...request, operation: 'ChangePassword', strength: 'basic' });
    await setPassword(tx, account.id, { hash, atMs: deps.clock.nowMs() });
    return 'changed';
  });
}

/**
 * Removes the password; every other session of the account ends. The last means of signing in stays.
 * @throws PASSWORD_NOT_SET, LAST_AUTH_METHOD, insufficient_user_authentication
 */
export async function removeOwnPassword(deps: OwnPasswordDeps, request: OwnRequest): Promise<void> {
  await act(deps, request, async (tx, account) => {
    if (account.passwordHash === undefined) throw refusal('PASSWORD_NOT_SET');
    const means = await findMeans(tx, account.id);
    const strength = ownsStrongFactor(means) ? 'strong' : 'basic';
    await requireRecentProof(deps, tx, { ...request, operation: 'RemovePassword', strength });
    if (countFirstFactors(means) === 1) throw refusal('LAST_AUTH_METHOD');
    await removePassword(tx, account.id);
    return 'removed';
  });
}

/** A password that others know is not replaced by itself. */
async function assertReplaces(deps: OwnPasswordDeps, { caller, password }: NewPassword): Promise<void> {
  const account = await findAccount(deps.db.read, requirePerson(caller));
  if (account?.passwordHash === undefined || !account.passwordChangeRequired) return;
  if (!(await deps.passwords.verify(password, account.passwordHash)).correct) return;
  const errors = { password: ['unchanged'] };
  throw refusal('PASSWORD_REFUSED', { details: { errors } });
}

async function hashOf(deps: OwnPasswordDeps, password: string): Promise<string> {
  const faults = await deps.passwordPolicy.judge(password, { words: [] });
  if (faults.length > 0) throw refusal('PASSWORD_REFUSED', { details: { errors: { password: faults } } });
  return deps.passwords.hash(password);
}

type Done = 'set' | 'changed' | 'removed';

async function act(
  deps: OwnPasswordDeps,
  request: OwnRequest,
  change: (tx: Tx, account: Account) => Promise<Done>,
): Promise<void> {
  const accountId = requirePerson(request.caller);
  await deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (account?.isActive !== true) throw refusal('insufficient_user_authentication');
    const done = await change(tx, account);
    const atMs = deps.clock.nowMs();
    if (done !== 'set') await endOtherSessions(tx, request.caller, atMs);
    await record(deps, tx, { account, request, done, atMs });
  });
  deps.notify();
  deps.notifyInboxes();
}

async function endOtherSessions(tx: Tx, caller: Caller, atMs: number): Promise<void> {
  for (const id of await listFamilies(tx, requirePerson(caller))) {
    if (id === caller.sessionId) continue;
    await endTokens(tx, { kind: 'family', key: id, families: { id }, reason: 'password-changed', atMs });
  }
}

interface PasswordRecord {
  readonly account: Account;
  readonly request: OwnRequest;
  readonly done: Done;
  readonly atMs: number;
}

async function record(
  deps: OwnPasswordDeps,
  tx: Tx,
  { account, request, done, atMs }: PasswordRecord,
): Promise<void> {
  const organizationId = request.caller.organizationId ?? (await findHomeOrganization(tx, account.id));
  if (organizationId === undefined) return;
  const naturalKey = await appendAuditEvent(tx, {
    organizationId,
    occurredAtMs: atMs,
    type: 'PasswordChanged',
    identityId: request.caller.subject,
    platformUserId: account.id,
    origin: request.origin,
    success: true,
    details: { change: done },
  });
  const title = `Your password was ${done}`;
  await notifyPerson(tx, {
    platformUserId: account.id,
    category: 'Security',
    eventKey: `password-${done}`,
    about: account.id,
    naturalKey,
    iconKey: 'security.password',
    title,
    atMs,
  });
  if (account.email === undefined || !account.emailVerified) return;
  const text = `${title}. If this was not you, ask for a new one at the sign-in page at once.\n`;
  await deps.messages.add(tx, { channel: 'mail', to: account.email, subject: title, text }, atMs);
}
