import { z } from 'zod';
import { CHANGE_TYPES } from '#core/blueprint/changes.ts';

const text = z.string();
const hash = text.describe('64 lower-case hex digits.');
const instant = text.describe('ISO 8601, UTC.');
const version = text.describe('major.minor');

export const systemRegisterStatuses = ['initializing', 'ready', 'degraded'] as const;
export const notReadyReasons = ['NotCreated', 'GenesisPending', 'SeedsPending', 'RegisterNotOnline'] as const;

export const systemRegisterSchema = z
  .object({
    registerId: text,
    name: text,
    status: z.enum(systemRegisterStatuses),
    reason: z.enum(notReadyReasons).optional().describe('Why it is not ready.'),
    blueprintCount: z.int(),
    createdAt: instant.nullable(),
    networkId: text,
    height: z.int(),
  })
  .meta({ id: 'SystemRegister' });

/** A blueprint in a list: its latest version. */
export const blueprintSchema = z
  .object({
    blueprintId: text,
    title: text,
    version,
    publishedAt: instant,
    publishedBy: text,
    isActive: z.boolean(),
    metadata: z.record(z.string(), z.string()),
    publicationTxId: text,
  })
  .meta({ id: 'SystemBlueprint' });

export const versionSchema = z
  .object({
    blueprintId: text,
    version,
    ordinal: z.int().describe('Number among the publications of the blueprint, from 1.'),
    major: z.int(),
    minor: z.int(),
    changeType: z.enum(CHANGE_TYPES),
    structuralHash: hash,
    execDefHash: hash,
    contentHash: hash,
    publishedAt: instant,
    publishedBy: text,
    transactionId: text,
    publicationTxId: text.describe('The same as transactionId.'),
  })
  .meta({ id: 'SystemBlueprintVersion' });

/** One version with its published definition. */
export const definitionSchema = z
  .object({
    ...blueprintSchema.shape,
    ...versionSchema.shape,
    definition: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'SystemBlueprintDefinition' });

export const changeSchema = z
  .object({
    changeType: z.enum(CHANGE_TYPES),
    currentVersion: version,
    proposedVersion: version,
    structuralHashCurrent: hash,
    structuralHashNew: hash,
    structuralFieldsChanged: z.array(text).describe('JSON Pointers; arrays are compared by index.'),
    behavioural: z.boolean().describe('Whether the executed part of the definition changes.'),
    alreadyPublished: z.boolean(),
  })
  .meta({ id: 'BlueprintChange' });
