import { z } from 'zod';
import { readableLine, readableName, readableText } from '#core/encoding/readable.ts';
import { AppError } from '#core/errors/errors.ts';
import { storable } from '../../database/text.ts';

const atMost32 = (value: object) => Object.keys(value).length <= 32;

/** Title and description of a new register. */
export const titleText = readableName.min(1).max(128);
export const descriptionText = readableText.max(2048);
export const metadataMap = z
  .record(readableLine.min(1).max(64), readableText.max(512))
  .refine(atMost32, 'at most 32 members');

/** The same for a register that may exist: `assertReadable` judges what is new. */
const judgedLater = 'New texts follow the rules for texts of a new register.';
export const knownTitle = storable(128).min(1).describe(judgedLater);
export const knownDescription = storable(2048).describe(judgedLater);
export const knownMetadata = z
  .record(storable(64).min(1), storable(512))
  .refine(atMost32, 'at most 32 members')
  .describe(judgedLater);

/** The reason for a change of a register or for a vote. */
export const reasonText = readableText.max(500);

interface RegisterTexts {
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

const newTexts = z.object({
  title: titleText.optional(),
  description: descriptionText.optional(),
  metadata: metadataMap,
});

/**
 * Refuses texts that would be displayed differently from how they are written. Texts that the ledger holds already may
 * be repeated: entries of metadata cannot be removed, and a request often contains all of them.
 * @throws AppError invalid INVALID_REQUEST that names the member
 */
export function assertReadable(given: RegisterTexts, sealed: RegisterTexts = {}): void {
  const known = new Map(Object.entries(sealed.metadata ?? {}));
  const entries = Object.entries(given.metadata ?? {}).filter(([key, value]) => known.get(key) !== value);
  const result = newTexts.safeParse({
    ...(given.title !== sealed.title && { title: given.title }),
    ...(given.description !== sealed.description && { description: given.description }),
    metadata: Object.fromEntries(entries),
  });
  const [issue] = result.error?.issues ?? [];
  if (issue === undefined) return;
  const [member] = issue.path;
  throw new AppError('invalid', 'INVALID_REQUEST', `${String(member)}: ${messageOf(issue)}`);
}

/** For a refused record key, zod nests the reason one level down. */
function messageOf(issue: z.core.$ZodIssue): string {
  const inner = issue.code === 'invalid_key' ? issue.issues[0] : undefined;
  return inner?.message ?? issue.message;
}
