import { nextVersion, versionText } from '#core/blueprint/changes.ts';
import {
  type Definition,
  type DefinitionFault,
  MAX_BLUEPRINT_BYTES,
  readDefinition,
} from '#core/blueprint/members.ts';
import { buildPublication, PUBLISH_ACTION, type Publication } from '#core/blueprint/publication.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { isJsonObject } from '#core/encoding/json.ts';
import { AppError, violation } from '#core/errors/errors.ts';
import type { Database, Reader } from '#kit/db/db.ts';
import { ForwardedRefusal } from '#kit/http/http.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { refusedWith } from '../../governance/control/answer.ts';
import { type ControlDeps, submitControl } from '../../governance/control/submit.ts';
import type { Confirmations } from '../../ledger/transactions/confirmations.ts';
import type { Register } from '../../registers/state/store.ts';
import { findVersion, type PublishedVersion } from '../publications/store.ts';
import { unreadableTexts } from '../publications/texts.ts';
import type { PresentedPublication } from './schemas.ts';

export interface PublishDeps extends ControlDeps {
  readonly database: Database<RegisterSchema>;
  readonly confirmations: Confirmations;
}

type PublishingRegister = Pick<Register, 'registerNo' | 'registerId'>;

/** Waits about one docket interval for the seal, then answers 202. */
const waitMs = 5_000;

/** Codes for a transaction id that is pending or sealed already: the same definition was published concurrently. */
const alreadySubmittedCodes: readonly (string | undefined)[] = ['TX_CONFLICT', 'VAL_CHAIN_004'];

/**
 * Parses the definition of a blueprint from JSON data; a definition without an id gets the blueprint's.
 * @throws AppError unprocessable VAL_SCHEMA_001 with one finding per fault, too_large TRANSACTION_TOO_LARGE
 */
export function definitionOf(blueprintId: string, value: unknown): Definition {
  const isUnnamed = isJsonObject(value) && !('id' in value);
  const read = readDefinition(isUnnamed ? { ...value, id: blueprintId } : value);
  if ('id' in read && read.id === blueprintId) {
    if (Buffer.byteLength(canonicalJson(read)) <= MAX_BLUEPRINT_BYTES) return read;
    throw refusal('TRANSACTION_TOO_LARGE', { message: 'A definition may have 524288 bytes at most.' });
  }
  throw refusedFor('id' in read ? [{ location: '/id', message: 'is not blueprintId' }] : read);
}

/**
 * As `definitionOf`, and refuses texts that would be displayed differently from how they are written.
 * @throws AppError as definitionOf does
 */
export function publishableDefinition(blueprintId: string, value: unknown): Definition {
  const definition = definitionOf(blueprintId, value);
  const faults = unreadableTexts(definition);
  if (faults.length > 0) throw refusedFor(faults);
  return definition;
}

function refusedFor(faults: readonly DefinitionFault[]): AppError {
  const violations = faults.map(({ location, message }) => violation('VAL_SCHEMA_001', message, location));
  const [first] = violations;
  return new AppError('unprocessable', 'VAL_SCHEMA_001', `${first?.field} ${first?.message}`, { violations });
}

async function findPublished(
  db: Reader<RegisterSchema>,
  register: PublishingRegister,
  { txId, blueprintId }: Publication,
) {
  return findVersion(db, { registerNo: register.registerNo, blueprintId }, { txId });
}

type Facts = Pick<PresentedPublication, 'version' | 'changeType' | 'submitted' | 'alreadyPublished'>;

function present(register: PublishingRegister, publication: Publication, facts: Facts): PresentedPublication {
  const { blueprintId, txId, execDefHash, structuralHash } = publication;
  const { registerId } = register;
  return { blueprintId, registerId, txId, publicationTxId: txId, execDefHash, structuralHash, ...facts };
}

function alreadyThere(
  register: PublishingRegister,
  publication: Publication,
  version: PublishedVersion,
): PresentedPublication {
  return present(register, publication, {
    version: versionText(version),
    changeType: version.changeType,
    submitted: false,
    alreadyPublished: true,
  });
}

/**
 * The version a definition gets if no other publication of the blueprint is sealed before it; ledger order decides.
 * Compares with the latest sealed version, whose structure is in the index.
 */
async function expectedVersion(
  db: Reader<RegisterSchema>,
  register: PublishingRegister,
  publication: Publication,
) {
  const { blueprintId, structuralHash } = publication;
  const latest = await findVersion(db, { registerNo: register.registerNo, blueprintId }, 'latest');
  const changeType = latest?.structuralHash === structuralHash ? 'documentation' : 'structural';
  return { version: versionText(nextVersion(latest, changeType)), changeType } as const;
}

/**
 * Publishes a definition on a register, signed by the installation. Publishing the same definition twice on a register
 * is one publication. The caller must check that the person may publish.
 * @throws ForwardedRefusal of the validator
 */
export async function publishDefinition(
  deps: PublishDeps,
  register: PublishingRegister,
  definition: Definition,
  publishedBy: string,
): Promise<PresentedPublication> {
  const { registerId } = register;
  const { read } = deps.database;
  const publication = buildPublication(registerId, definition, publishedBy);
  const find = () => findPublished(read, register, publication);
  const before = await find();
  if (before !== undefined) return alreadyThere(register, publication, before);
  const expected = await expectedVersion(read, register, publication);
  const { txId, blueprintId, payload, metadata } = publication;
  const draft = { blueprintId, actionId: PUBLISH_ACTION, payload, metadata, transactionId: txId };
  const { answer } = await submitControl(deps, register, draft, 'system');
  if (answer.status < 300)
    return present(register, publication, { ...expected, submitted: true, alreadyPublished: false });
  if (!alreadySubmittedCodes.includes(refusedWith(answer))) throw new ForwardedRefusal(answer);
  const sealed = await deps.confirmations.wait({ registerId, txId }, { timeoutMs: waitMs, find });
  if (sealed === undefined) throw new ForwardedRefusal(answer);
  return alreadyThere(register, publication, sealed);
}
