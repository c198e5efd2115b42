import { randomUUIDv7 } from 'node:crypto';
import { execDefHash } from '#core/blueprint/hashes.ts';
import type { Finding } from '#core/blueprint/model/finding.ts';
import { warningAt } from '#core/blueprint/model/finding.ts';
import { isAppError, type Violation } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Ledger } from '../../clients/ledger.ts';
import type { Registers } from '../../clients/registers.ts';
import type { BlueprintDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { isPublishable, type Judged } from '../../evaluation/judge.ts';
import type { DraftJudge } from '../../evaluation/pool.ts';
import { organizationOf, parseStored } from '../drafts/drafts.ts';
import type { Draft } from '../drafts/store.ts';
import type { PublicationIndex } from '../publications/follow.ts';
import { findPublication, type IndexedPublication } from '../publications/store.ts';
import type { Subject } from '../publications/visibility.ts';
import { type GovernanceDeps, getPublisher } from './governance.ts';
import type { DesignerMeter } from './metrics.ts';
import { findPublishingOrganization, hasPass, storeOverride, storeSubmitted } from './store.ts';

export interface PublishDeps extends GovernanceDeps {
  readonly db: Database<BlueprintDatabase>;
  readonly clock: Clock;
  readonly judge: Pick<DraftJudge, 'judge'>;
  readonly registers: Pick<Registers, 'getRoster' | 'publish'>;
  readonly ledger: Pick<Ledger, 'findRegister'>;
  readonly index: Pick<PublicationIndex, 'read'>;
  readonly meter: Pick<DesignerMeter, 'overridden'>;
  /** Waits for the next event of a register, at most so long. */
  readonly nextRegisterEvent: NextEvent;
}

/** Resolves at the next wake signal, or when the time is up. */
export type NextEvent = (timeoutMs: number) => Promise<void>;

interface PublishRequest {
  readonly registerId: string;
  readonly override?: { readonly confirm: boolean; readonly reason?: string | undefined } | undefined;
}

interface PublishedDraft {
  readonly blueprintId: string;
  readonly version: number;
  readonly registerId: string;
  readonly publishedAt: string;
  readonly overridden: boolean;
  readonly warnings?: readonly Finding[];
  readonly publicationTxId: string;
  readonly execDefHash: string;
  readonly sealed: boolean;
  readonly alreadyPublished: boolean;
}

/** Time that a publication may take to be sealed before it is answered as not sealed. */
const sealWaitMs = 10_000;
/** The index is read at each event of registers, and at least so often. */
const lookEveryMs = 1_000;

/**
 * Publishes the definition of a draft on a register. Nothing is stored unless the register accepts it.
 *
 * @throws AppError GOVERNANCE_ROSTER_NOT_SEALED, GOVERNANCE_ROSTER_UNAVAILABLE, PUBLISH_ROLE_REQUIRED, BLUEPRINT_INVALID,
 * DRAFT_JUDGING_BUSY, BLUEPRINT_ID_TAKEN, REHEARSAL_REQUIRED, REGISTER_REFUSED, REGISTER_UNAVAILABLE
 */
export async function publishDraft(
  deps: PublishDeps,
  subject: Subject,
  draft: Draft,
  request: PublishRequest,
): Promise<PublishedDraft> {
  const organizationId = organizationOf(subject.caller);
  const { registerId, override } = request;
  const { blueprintId } = draft;
  const member = await getPublisher(deps, subject, { registerId, act: 'blueprint.publish' });
  const { definition, warnings } = await getPublishable(deps, draft);
  const hash = execDefHash(definition);
  const first = await findPublishingOrganization(deps.db.read, registerId, blueprintId);
  if (first !== undefined && first !== organizationId) throw refusal('BLUEPRINT_ID_TAKEN');
  const isRehearsed = await hasPass(deps.db.read, { organizationId, blueprintId, execDefHash: hash });
  if (!isRehearsed && override?.confirm !== true) throw rehearsalRequired(hash);
  const notes = await developmentWarnings(deps, registerId);
  const publishing = { registerId, blueprintId, definition, member, execDefHash: hash };
  const { publicationTxId, alreadyPublished } = await deps.registers.publish(publishing);
  const at = new Date(deps.clock.nowMs());
  const overridden = !isRehearsed;
  const submitted = { registerId, publicationTxId, blueprintId, organizationId, at };
  await deps.db.transact(async (tx) => {
    await storeSubmitted(tx, submitted);
    if (!overridden) return;
    const platformUserId = subject.caller.platformUserId ?? subject.caller.subject;
    const reason = override?.reason;
    await storeOverride(tx, { ...submitted, id: randomUUIDv7(), execDefHash: hash, platformUserId, reason });
  });
  if (overridden) deps.meter.overridden(override?.reason !== undefined);
  const sealed = await waitForSeal(deps, { registerId, blueprintId, publicationTxId });
  const all = [...warnings, ...notes];
  return {
    blueprintId,
    version: sealed?.ordinal ?? (await nextOrdinal(deps, { registerId, blueprintId })),
    registerId,
    publishedAt: sealed?.sealedAt ?? at.toISOString(),
    overridden,
    ...(all.length > 0 && { warnings: all }),
    publicationTxId,
    execDefHash: hash,
    sealed: sealed !== undefined,
    alreadyPublished,
  };
}

/** The definition of a draft as it would be published; throws BLUEPRINT_INVALID with everything that was found. */
export async function getPublishable({ judge }: Pick<PublishDeps, 'judge'>, draft: Draft) {
  const judged = await judge.judge(parseStored(draft));
  const warnings = judged.findings.filter(({ severity }) => severity === 'Warning');
  if (!isPublishable(judged)) throw invalidDefinition(judged);
  return { definition: judged.definition, warnings };
}

function invalidDefinition({ findings }: Judged) {
  const violations = findings.filter(({ severity }) => severity === 'Error').map(violationOf);
  const warnings = findings.filter(({ severity }) => severity === 'Warning').map(violationOf);
  const isSound = violations.every(({ code }) => code === 'VAL_BP_CRED_UNAVAILABLE');
  return refusal(isSound ? 'BLUEPRINT_UNAVAILABLE' : 'BLUEPRINT_INVALID', {
    violations,
    ...(warnings.length > 0 && { details: { warnings } }),
  });
}

function violationOf({ severity, code, message, location }: Finding): Violation {
  return { severity, code, message, field: location };
}

function rehearsalRequired(hash: string) {
  const error = refusal('REHEARSAL_REQUIRED');
  return refusal('REHEARSAL_REQUIRED', { details: { execDefHash: hash, message: error.message } });
}

/** A development register does not encrypt. That must be known, so a publication waits for the register service. */
async function developmentWarnings({ ledger }: PublishDeps, registerId: string): Promise<Finding[]> {
  const register = await ledger.findRegister(registerId).catch((cause: unknown) => {
    throw refusal('REGISTER_UNAVAILABLE', { cause });
  });
  if (register?.devMode !== true) return [];
  const text = 'The register is in development mode: every reader of it sees the data of all actions';
  return [warningAt('', 'WARN_BP_DEVELOPMENT_REGISTER', text)];
}

interface Named {
  readonly registerId: string;
  readonly blueprintId: string;
}

/** A publication that the register accepted, when it is sealed; undefined when that takes longer than 10 s. */
export async function waitForSeal(
  { db, index, clock, nextRegisterEvent }: Pick<PublishDeps, 'db' | 'index' | 'clock' | 'nextRegisterEvent'>,
  publication: Named & { readonly publicationTxId: string },
): Promise<IndexedPublication | undefined> {
  const until = clock.nowMs() + sealWaitMs;
  for (;;) {
    const event = nextRegisterEvent(lookEveryMs);
    try {
      await index.read(publication.registerId);
    } catch (error) {
      // The publication is accepted: an outage now delays only the answer whether it is sealed.
      if (!isAppError(error, 'unavailable') && !isAppError(error, 'timeout')) throw error;
    }
    const found = await findPublication(db.read, publication);
    if (found !== undefined || clock.nowMs() >= until) return found;
    await event;
  }
}

/** The ordinal that a publication gets unless another one is sealed before it. */
async function nextOrdinal({ db }: PublishDeps, named: Named): Promise<number> {
  const latest = await findPublication(db.read, named);
  return (latest?.ordinal ?? 0) + 1;
}
