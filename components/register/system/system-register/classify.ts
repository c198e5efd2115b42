import type { z } from 'zod';
import { classifyChange, nextVersion, versionText } from '#core/blueprint/changes.ts';
import { execDefHash, publicationTxId } from '#core/blueprint/hashes.ts';
import type { Definition } from '#core/blueprint/members.ts';
import type { Reader } from '#kit/db/db.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import { findVersion, type PublishedVersion } from '../../blueprints/publications/store.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { Register } from '../../registers/state/store.ts';
import type { changeSchema } from './schemas.ts';

interface PublishedState {
  readonly version: PublishedVersion;
  readonly definition: Readonly<Record<string, unknown>>;
}

/**
 * The version that publishing a definition would give a blueprint. A definition that is published already keeps its
 * version.
 */
export async function classify(
  db: Reader<RegisterSchema>,
  register: Pick<Register, 'registerNo' | 'registerId'>,
  { version: current, definition }: PublishedState,
  proposed: Definition,
): Promise<ReadonlyDeep<z.output<typeof changeSchema>>> {
  const { blueprintId } = current;
  const txId = publicationTxId(register.registerId, blueprintId, proposed);
  const known = await findVersion(db, { registerNo: register.registerNo, blueprintId }, { txId });
  const classified = classifyChange(definition, proposed);
  return {
    changeType: classified.changeType,
    currentVersion: versionText(current),
    proposedVersion: versionText(known ?? nextVersion(current, classified.changeType)),
    structuralHashCurrent: classified.structuralHashCurrent,
    structuralHashNew: classified.structuralHashNew,
    structuralFieldsChanged: classified.structuralFieldsChanged,
    behavioural: current.execDefHash !== execDefHash(proposed),
    alreadyPublished: known !== undefined,
  };
}
