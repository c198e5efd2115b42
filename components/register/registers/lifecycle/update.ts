import type { Verifier } from '#core/crypto/verify.ts';
import { AppError } from '#core/errors/errors.ts';
import { decide } from '#core/identity/policies.ts';
import { governanceDraft } from '#core/ledger/governance/build.ts';
import { GOVERNANCE_PAYLOAD_VERSION } from '#core/ledger/governance/operation.ts';
import type { RosterRole } from '#core/ledger/owner-attestation.ts';
import type { Database } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { assertAccepted } from '../../governance/control/answer.ts';
import { findRosterSigner } from '../../governance/control/roster-authorisation.ts';
import { type ControlDeps, submitControl } from '../../governance/control/submit.ts';
import { loadRules } from '../../governance/rules/load.ts';
import { findLocation } from '../../ledger/sealed/store.ts';
import { everywhere } from '../../ledger/segments/store.ts';
import type { Confirmations } from '../../ledger/transactions/confirmations.ts';
import type { Subject } from '../state/access.ts';
import { getRegister } from '../state/access.ts';
import type { SeenRegister } from '../state/store.ts';
import { assertReadable } from '../state/texts.ts';
import { setAdvertise } from './store.ts';

export interface UpdateDeps extends ControlDeps {
  readonly database: Database<RegisterSchema>;
  readonly verifier: Verifier;
  readonly confirmations: Confirmations;
  /** Called when the advertised data changed. */
  readonly onUpdated: () => void;
}

/** The changeable members of a register: facts of the ledger, and whether this node advertises it. */
interface RegisterUpdate {
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly advertise?: boolean | undefined;
}

/** A register after an update; `pendingTxId` names the control transaction that is not sealed yet. */
interface UpdatedRegister {
  readonly register: SeenRegister;
  readonly pendingTxId?: string;
}

/** Waits about one docket interval. */
const waitMs = 5_000;
const governing: readonly RosterRole[] = ['Owner', 'Admin'];

/**
 * The installation signs the change, so the caller must be an Owner or Admin of the roster, or an administrator of the
 * organisation that owns the register.
 */
async function assertMayUpdate(deps: UpdateDeps, register: SeenRegister, subject: Subject): Promise<void> {
  const { caller } = subject;
  const owns = register.organizationId !== undefined && register.organizationId === caller.organizationId;
  if (owns && decide('CanManageRegisters', caller) === 'allow') return;
  const rules = await loadRules(deps, register);
  const voter = await findRosterSigner(deps.wallets, subject, rules, ({ role }) => governing.includes(role));
  if (voter !== undefined) return;
  throw new AppError('forbidden', 'FORBIDDEN', 'You do not administer this register.');
}

/** Title, description and metadata are facts of the ledger: a control transaction changes them. */
async function changeFacts(
  deps: UpdateDeps,
  register: SeenRegister,
  update: RegisterUpdate,
): Promise<UpdatedRegister> {
  const { registerId, registerNo, organizationId } = register;
  const { title, description, metadata } = update;
  const payload = { version: GOVERNANCE_PAYLOAD_VERSION, registerId, title, description, metadata };
  const draft = governanceDraft('control.register.updatemetadata', payload);
  const { txId, answer } = await submitControl(deps, register, draft, 'system');
  assertAccepted(answer);
  const find = () => findLocation(deps.database.read, { registerNo, keySegments: everywhere }, txId);
  const sealed = await deps.confirmations.wait({ registerId, txId }, { timeoutMs: waitMs, find });
  const changed = await getRegister(deps.database.read, registerId, organizationId);
  return { register: changed, ...(sealed === undefined && { pendingTxId: txId }) };
}

/**
 * Updates a register, and waits a while until the ledger has sealed the change.
 * @param register accepts submissions of the caller
 * @throws ForwardedRefusal of the validator
 */
export async function updateRegister(
  deps: UpdateDeps,
  subject: Subject,
  register: SeenRegister,
  update: RegisterUpdate,
): Promise<UpdatedRegister> {
  await assertMayUpdate(deps, register, subject);
  assertReadable(update, register);
  const { advertise } = update;
  if (advertise !== undefined && advertise !== register.advertise) {
    const { registerNo, registerId } = register;
    const at = new Date(deps.clock.nowMs());
    await deps.database.transact((tx) => setAdvertise(tx, { registerNo, registerId, advertise, at }));
    deps.onUpdated();
  }
  const isFact = [update.title, update.description, update.metadata].some((member) => member !== undefined);
  if (isFact) return changeFacts(deps, register, update);
  return { register: await getRegister(deps.database.read, register.registerId) };
}
