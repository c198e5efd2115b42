import { canonicalJson } from '../encoding/jcs.ts';
import { isJsonObject, type JsonObject, scanJson, toValue } from '../encoding/json.ts';
import { isAppError } from '../errors/errors.ts';
import { contentHash, execDefHash, publicationTxId, publishedForm, structuralHash } from './hashes.ts';

export const PUBLISH_ACTION = 'blueprint-publish';
const PUBLICATION_PAYLOAD_VERSION = 1;

/** A definition as JSON data of any shape; its id is the id of the blueprint. */
type Published = JsonObject & { readonly id: string };

/** Payload of the transaction that publishes a blueprint. Its hash binds the definition and the publisher. */
interface PublicationPayload {
  readonly version: typeof PUBLICATION_PAYLOAD_VERSION;
  /** In its published form. */
  readonly definition: JsonObject;
  /** DID of the publisher. */
  readonly publishedBy: string;
}

/** A publication, with everything that follows from register, definition and publisher. */
export interface Publication {
  readonly txId: string;
  readonly blueprintId: string;
  readonly payload: PublicationPayload;
  readonly metadata: Readonly<Record<string, string>>;
  readonly contentHash: string;
  readonly execDefHash: string;
  readonly structuralHash: string;
}

/** The members of a sealed transaction that decide whether it publishes a blueprint. */
export interface PublishingTransaction {
  readonly registerId: string;
  readonly txId: string;
  readonly type: string;
  readonly blueprintId?: string | undefined;
  readonly actionId?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/**
 * Builds the publication of a definition on a register (specification document 2, section 2). Unlike others, its
 * transaction id is not derived from the envelope, so the payload names the publisher and the metadata contains nothing
 * that does not follow from the payload.
 */
export function buildPublication(
  registerId: string,
  definition: Published,
  publishedBy: string,
): Publication {
  const { id } = definition;
  const payload = {
    version: PUBLICATION_PAYLOAD_VERSION,
    definition: publishedForm(definition),
    publishedBy,
  } as const;
  const hashes = {
    contentHash: contentHash(definition),
    execDefHash: execDefHash(definition),
    structuralHash: structuralHash(definition),
  };
  const metadata = { Type: 'Control', transactionType: 'BlueprintPublish', publishedBy, ...hashes };
  const txId = publicationTxId(registerId, id, definition);
  return { txId, blueprintId: id, payload, metadata, ...hashes };
}

function spells(transaction: PublishingTransaction, payload: unknown): Publication | undefined {
  const { registerId, txId, blueprintId, metadata = {} } = transaction;
  if (!isJsonObject(payload)) return undefined;
  const { definition, publishedBy } = payload;
  if (!isJsonObject(definition) || typeof publishedBy !== 'string') return undefined;
  const { id } = definition;
  if (typeof id !== 'string' || id !== blueprintId) return undefined;
  const publication = buildPublication(registerId, { ...definition, id }, publishedBy);
  const follows =
    publication.txId === txId &&
    canonicalJson(publication.payload) === canonicalJson(payload) &&
    canonicalJson(publication.metadata) === canonicalJson(metadata);
  return follows ? publication : undefined;
}

/**
 * Finds the publication in a transaction; undefined for any other transaction, and when id, payload and metadata do not
 * follow from one another.
 * @param payload the bytes that were hashed
 */
export function findPublication(
  transaction: PublishingTransaction,
  payload: Uint8Array,
): Publication | undefined {
  if (transaction.type !== 'Control' || transaction.actionId !== PUBLISH_ACTION) return undefined;
  try {
    return spells(transaction, toValue(scanJson(payload)));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}
