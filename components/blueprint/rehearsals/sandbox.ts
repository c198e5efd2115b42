import { execDefHash } from '#core/blueprint/hashes.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import { memberDid } from '#core/ledger/did.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { OwnWallets } from '../clients/own-wallets.ts';
import type { Registers } from '../clients/registers.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import type { DesignerMeter } from '../definitions/publishing/metrics.ts';
import { type PublishDeps, waitForSeal } from '../definitions/publishing/publish.ts';
import { refusal } from '../errors.ts';
import { findSandbox, insertSandbox } from './store.ts';

export interface SandboxDeps extends Pick<PublishDeps, 'index' | 'nextRegisterEvent'> {
  readonly db: Database<BlueprintDatabase>;
  readonly clock: Clock;
  readonly registers: Pick<Registers, 'publish' | 'ensureSandbox'>;
  readonly ownWallets: OwnWallets;
  readonly meter: Pick<DesignerMeter, 'sandboxMade'>;
}

/** The wallet that owns the sandbox registers of all organisations. */
const ownerName = 'sandboxes';
/** Time that a new register has to seal its first docket. */
const beginMs = 15_000;
const lookEveryMs = 1_000;

/** A register in which an organisation rehearses, and the member of its roster that publishes there. */
interface Sandbox {
  readonly registerId: string;
  readonly member: string;
}

/** The sandbox of an organisation, created at its first rehearsal. Errors: REGISTER_UNAVAILABLE, WALLETS_UNAVAILABLE. */
export async function ensureSandbox(deps: SandboxDeps, organizationId: string): Promise<Sandbox> {
  const owner = await deps.ownWallets.ensure(ownerName);
  const member = memberDid(owner);
  const known = await findSandbox(deps.db.read, organizationId);
  if (known !== undefined) return { registerId: known, member };
  const registerId = await deps.registers.ensureSandbox(organizationId, owner);
  const at = new Date(deps.clock.nowMs());
  const isNew = await deps.db.transact((tx) => insertSandbox(tx, { organizationId, registerId, at }));
  if (isNew) deps.meter.sandboxMade();
  return { registerId, member };
}

/** Participants of a definition whose wallets it names. */
function isClosed(participant: JsonObject): boolean {
  return participant['walletAddress'] !== undefined && participant['walletAddress'] !== null;
}

/** A definition under an id of its own, its closed participants with the wallets of their roles; open ones stay open. */
export function sandboxCopy(
  definition: JsonObject,
  { id, wallets }: { readonly id: string; readonly wallets: Readonly<Record<string, string>> },
): JsonObject & { readonly id: string } {
  const { participants } = definition;
  const copied = (Array.isArray(participants) ? participants : []).filter(isJsonObject).map((participant) => {
    const wallet = wallets[String(participant['id'])];
    return isClosed(participant) && wallet !== undefined
      ? { ...participant, walletAddress: wallet }
      : participant;
  });
  return { ...definition, id, participants: copied };
}

/**
 * Publishes a definition in a sandbox; resolves to its publication when that is sealed.
 * @throws AppError GOVERNANCE_ROSTER_NOT_SEALED while the register has not begun, REGISTER_UNAVAILABLE, REGISTER_REFUSED
 */
export async function publishCopy(
  deps: SandboxDeps,
  { registerId, member }: Sandbox,
  definition: JsonObject & { readonly id: string },
): Promise<string> {
  const { id: blueprintId } = definition;
  const publishing = { registerId, blueprintId, definition, member, execDefHash: execDefHash(definition) };
  const publicationTxId = await publishWhenBegun(deps, publishing);
  const sealed = await waitForSeal(deps, { registerId, blueprintId, publicationTxId });
  if (sealed === undefined) throw refusal('REGISTER_UNAVAILABLE', { retryAfterSeconds: 5 });
  return publicationTxId;
}

async function publishWhenBegun(
  { registers, clock, nextRegisterEvent }: SandboxDeps,
  publishing: Parameters<Registers['publish']>[0],
): Promise<string> {
  const until = clock.nowMs() + beginMs;
  for (;;) {
    const event = nextRegisterEvent(lookEveryMs);
    try {
      return (await registers.publish(publishing)).publicationTxId;
    } catch (error) {
      const isEarly = isAppError(error) && error.code === 'GOVERNANCE_ROSTER_NOT_SEALED';
      if (!isEarly || clock.nowMs() >= until) throw error;
    }
    await event;
  }
}
