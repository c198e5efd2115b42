import type { z } from 'zod';
import { versionText } from '#core/blueprint/changes.ts';
import { apiTimestamp, findTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import type { PublishedVersion } from '../../blueprints/publications/store.ts';
import { systemRegisterTitle } from './begin.ts';
import type { blueprintSchema, definitionSchema, systemRegisterSchema, versionSchema } from './schemas.ts';
import type { SystemRegisterState } from './state.ts';

/** The time of a docket, in the format of answers. */
function publishedAt({ publishedAt: text }: PublishedVersion): string {
  return apiTimestamp(Number(ticksToMicros(findTimestamp(text) ?? 0n)) / 1000);
}

/** The record of the system register; without time and height before it exists. */
export function presentState(
  { register, status, reason, blueprintCount }: SystemRegisterState,
  facts: { readonly registerId: string; readonly networkId: string },
): z.output<typeof systemRegisterSchema> {
  return {
    registerId: facts.registerId,
    name: register?.title ?? systemRegisterTitle,
    status,
    ...(reason !== undefined && { reason }),
    blueprintCount,
    createdAt: register === undefined ? null : apiTimestamp(register.createdAt.getTime()),
    networkId: facts.networkId,
    height: register?.height ?? 0,
  };
}

/** A blueprint in a list: its latest version. */
export function presentBlueprint(version: PublishedVersion): z.output<typeof blueprintSchema> {
  return {
    blueprintId: version.blueprintId,
    title: version.title,
    version: versionText(version),
    publishedAt: publishedAt(version),
    publishedBy: version.publishedBy,
    isActive: true,
    metadata: version.metadata,
    publicationTxId: version.txId,
  };
}

/** An entry of the list of versions (specification document 2, section 2). */
export function presentVersion(version: PublishedVersion): z.output<typeof versionSchema> {
  return {
    blueprintId: version.blueprintId,
    version: versionText(version),
    ordinal: version.ordinal,
    major: version.major,
    minor: version.minor,
    changeType: version.changeType,
    structuralHash: version.structuralHash,
    execDefHash: version.execDefHash,
    contentHash: version.contentHash,
    publishedAt: publishedAt(version),
    publishedBy: version.publishedBy,
    transactionId: version.txId,
    publicationTxId: version.txId,
  };
}

/** One version with its published definition. */
export function presentDefinition(
  version: PublishedVersion,
  definition: Record<string, unknown>,
): z.output<typeof definitionSchema> {
  return { ...presentBlueprint(version), ...presentVersion(version), definition };
}
