import { z } from 'zod';
import { readableLine, readableText } from '#core/encoding/readable.ts';

export const blueprintIdSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{1,63}$/, '2 to 64 lower-case letters, digits and dashes');

const items = (most: number) => z.array(z.looseObject({})).max(most);

/**
 * A definition as it may be stored: the members that lists show are texts that people can read, and its parts have the
 * right kind. Whether it is a workflow is judged when it is validated or published.
 */
export const draftBody = z.looseObject({
  id: blueprintIdSchema.optional().describe('Of the blueprint; a UUID when absent.'),
  title: readableLine.min(1).max(200),
  description: readableText.max(2_000).default(''),
  participants: items(32).default([]),
  actions: items(200).default([]),
  metadata: z.record(z.string().max(128), z.string().max(4_096)).optional(),
});

export type DraftBody = z.output<typeof draftBody>;

const text = z.string();
const instant = text.describe('ISO 8601, UTC.');

/** A stored definition with the members that this service adds. */
export const definitionSchema = z
  .looseObject({
    id: text,
    title: text,
    description: text,
    version: z.int().describe('Revision of the draft.'),
    organizationId: text,
    createdAt: instant,
    updatedAt: instant,
  })
  .meta({ id: 'BlueprintDefinition' });

export const draftStatuses = ['Draft', 'Published', 'Archived'] as const;
export type DraftStatus = (typeof draftStatuses)[number];

/** A draft in a list. */
export const draftItemSchema = z
  .object({
    id: text.describe('Names the draft in paths.'),
    blueprintId: text,
    title: text,
    description: text,
    status: z.enum(draftStatuses),
    createdAt: instant,
    updatedAt: instant,
    participantCount: z.int(),
    actionCount: z.int(),
    latestPublicationTxId: text.optional(),
  })
  .meta({ id: 'BlueprintDraft' });
