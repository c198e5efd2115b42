import { findPublication, type Publication } from '#core/blueprint/publication.ts';
import { isJsonObject } from '#core/encoding/json.ts';
import type { SealedRecord } from '#core/ledger/record.ts';
import { longestIndexedBytes } from '../../database/schema.ts';
import { withoutNul } from '../../database/text.ts';

/** A publication with its position in the docket that seals it. */
export interface SealedPublication {
  readonly publication: Publication;
  readonly position: number;
  /** timestamp of the docket */
  readonly publishedAt: string;
}

/** The title that lists show; undefined for a definition of an unknown shape. */
export function titleOf({ payload }: Publication): string {
  const { title } = payload.definition;
  return typeof title === 'string' ? withoutNul(title) : '';
}

/** The publisher, as the payload names it. */
export function publisherOf({ payload }: Publication): string {
  return withoutNul(payload.publishedBy);
}

/** The text members of a definition's metadata. */
export function metadataOf({ payload }: Publication): Readonly<Record<string, string>> {
  const { metadata } = payload.definition;
  if (!isJsonObject(metadata)) return {};
  const entries = Object.entries(metadata).flatMap(([name, value]) =>
    typeof value === 'string' ? [[withoutNul(name), withoutNul(value)] as const] : [],
  );
  return Object.fromEntries(entries);
}

const isIndexable = ({ blueprintId }: Publication): boolean =>
  Buffer.byteLength(blueprintId) <= longestIndexedBytes && !blueprintId.includes('\u0000');

/**
 * The publications of a docket in docket order. One whose name is too long for the index is found by its transaction id
 * only.
 */
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
