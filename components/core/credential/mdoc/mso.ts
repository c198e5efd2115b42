import type { Sha2 } from '../../crypto/hash.ts';
import { type CborNode, findCborMember } from '../../encoding/cbor.ts';
import { findTimestamp, ticksToMs } from '../../encoding/timestamp.ts';
import { refusePresentation } from '../presentation.ts';
import { findStatusReference, type StatusReference } from '../status-list/reference.ts';
import { claimOf } from './claims.ts';
import { bytesOf } from './cose.ts';

/** What the issuer of an mdoc signed (ISO 18013-5 section 9.1.2.4). */
export interface MobileSecurityObject {
  readonly docType: string;
  readonly hash: Sha2;
  /** Digests by namespace and digest id. */
  readonly digests: ReadonlyMap<string, ReadonlyMap<bigint, Uint8Array>>;
  /** A COSE_Key. */
  readonly deviceKey: CborNode;
  readonly signedMs: number;
  readonly validFromMs: number;
  readonly validUntilMs: number;
  readonly status: StatusReference | 'unsupported' | undefined;
}

const HASHES: ReadonlyMap<unknown, Sha2> = new Map<unknown, Sha2>([
  ['SHA-256', 'sha256'],
  ['SHA-384', 'sha384'],
  ['SHA-512', 'sha512'],
]);

function refuse(message: string): never {
  return refusePresentation('FORMAT', message);
}

function textOf(node: CborNode | undefined, what: string): string {
  return node?.kind === 'text' ? node.value : refuse(`${what} is no text`);
}

function timeOf(validity: CborNode, name: string): number {
  const node = findCborMember(validity, name);
  if (node?.kind !== 'tag' || node.tag !== 0) refuse(`The time ${name} is no date and time`);
  const ticks = findTimestamp(textOf(node.inner, name));
  return ticks === undefined ? refuse(`The time ${name} is no date and time`) : ticksToMs(ticks);
}

function digestsOf(node: CborNode): ReadonlyMap<bigint, Uint8Array> {
  if (node.kind !== 'map') refuse('The digests of a namespace are no map');
  return new Map(
    node.entries.map(({ key, value }) => [
      key.kind === 'integer' ? key.value : refuse('A digest id is no number'),
      bytesOf(value, 'A digest'),
    ]),
  );
}

/**
 * Reads a mobile security object of version 1.0.
 * @throws AppError unprocessable FORMAT
 */
export function parseMobileSecurityObject(node: CborNode): MobileSecurityObject {
  const find = (name: string): CborNode | undefined => findCborMember(node, name);
  if (textOf(find('version'), 'The version') !== '1.0') refuse('The security object is not of version 1.0');
  const hash = HASHES.get(textOf(find('digestAlgorithm'), 'The digest algorithm'));
  if (hash === undefined) refuse('The digest algorithm is not supported');
  const values = find('valueDigests');
  if (values?.kind !== 'map') refuse('The digests are no map');
  const keyInfo = find('deviceKeyInfo');
  const deviceKey = keyInfo === undefined ? undefined : findCborMember(keyInfo, 'deviceKey');
  const validity = find('validityInfo');
  if (deviceKey === undefined || validity === undefined)
    refuse('The security object has no device key or no validity');
  const status = find('status');
  return {
    docType: textOf(find('docType'), 'The type'),
    hash,
    digests: new Map(values.entries.map(({ key, value }) => [textOf(key, 'A namespace'), digestsOf(value)])),
    deviceKey,
    signedMs: timeOf(validity, 'signed'),
    validFromMs: timeOf(validity, 'validFrom'),
    validUntilMs: timeOf(validity, 'validUntil'),
    status: status === undefined ? undefined : findStatusReference(claimOf(status)),
  };
}
