import { findPublication, type Publication } from '#core/blueprint/publication.ts';
import { isJsonObject } from '#core/encoding/json.ts';
import type { SealedRecord } from '#core/ledger/record.ts';
import { LONGEST_INDEXED_BYTES } from '../database/schema.ts';
import { withoutNul } from '../database/text.ts';

/** A publication with its place in the docket that seals it. */
export interface SealedPublication {
  readonly publication: Publication;
  readonly position: number;
  /** timestamp of the docket */
  readonly publishedAt: string;
}

/** What a list shows of a definition; a definition of another shape shows less. */
export function titleOf({ payload }: Publication): string {
  const { title } = payload.definition;
  return typeof title === 'string' ? withoutNul(title) : '';
}

/** Who published, as the payload says. */
export function publisherOf({ payload }: Publication): string {
  return withoutNul(payload.publishedBy);
}

/** The members of a definition's metadata that are text. */
export function metadataOf({ payload }: Publication): Readonly<Record<string, string>> {
  const { metadata } = payload.definition;
  if (!isJsonObject(metadata)) return {};
  const entries = Object.entries(metadata).flatMap(([name, value]) =>
    typeof value === 'string' ? [[withoutNul(name), withoutNul(value)] as const] : [],
  );
  return Object.fromEntries(entries);
}

const isIndexable = ({ blueprintId }: Publication): boolean =>
  Buffer.byteLength(blueprintId) <= LONGEST_INDEXED_BYTES && !blueprintId.includes('\u0000');

/** The publications of a docket in its order; one whose name no index takes is found by its transaction id alone. */
export function publicationsOf(
  records: readonly SealedRecord[],
  payloadOf: (position: number) => Uint8Array,
  publishedAt: string,
): SealedPublication[] {
  return records.flatMap((record, position) => {
    const publication = findPublication(record, payloadOf(position));
    return publication === undefined || !isIndexable(publication)
      ? []
      : [{ publication, position, publishedAt }];
  });
}
