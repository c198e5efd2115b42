import { type CborValue, writeCbor } from '../../encoding/cbor-writer.ts';
import type { StatusBits } from '../status-list/status-list.ts';
import { COSE_HEADER, ES256, signedBytes } from './cose.ts';

/** A status list as a CWT states it. */
interface StatusListClaims {
  /** Its own address. */
  readonly uri: string;
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly ttlSeconds: number;
  readonly bits: StatusBits;
  /** zlib data. */
  readonly compressed: Uint8Array;
  /** DER, the leaf first; never the root. */
  readonly certificates: readonly Uint8Array[];
}

/** Claims and headers of CWTs (RFC 8392, RFC 9596), and those of the draft. */
const CLAIM = { subject: 2, expires: 4, issuedAt: 6, ttl: 65534, statusList: 65533 } as const;
const TYPE_HEADER = 16;
/** Tag of COSE_Sign1 (RFC 9052 section 4.2). */
const SIGN1_TAG = 18;

/**
 * Issues a status list token in CWT format (draft-ietf-oauth-status-list-21 section 5.2), signed with ES256.
 * @param sign signs a message by ES256: r followed by s, 64 bytes
 */
export async function issueStatusCwt(
  claims: StatusListClaims,
  sign: (message: Uint8Array) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const [leaf = new Uint8Array(0), ...intermediates] = claims.certificates;
  const x5chain: CborValue = intermediates.length === 0 ? leaf : [leaf, ...intermediates];
  const protectedHeader = writeCbor(
    new Map<number, CborValue>([
      [COSE_HEADER.algorithm, ES256],
      [TYPE_HEADER, 'application/statuslist+cwt'],
    ]),
  );
  const list = new Map<string, CborValue>([
    ['bits', claims.bits],
    ['lst', claims.compressed],
  ]);
  const payload = writeCbor(
    new Map<number, CborValue>([
      [CLAIM.subject, claims.uri],
      [CLAIM.expires, claims.expiresAt],
      [CLAIM.issuedAt, claims.issuedAt],
      [CLAIM.ttl, claims.ttlSeconds],
      [CLAIM.statusList, list],
    ]),
  );
  const signature = await sign(signedBytes(protectedHeader, payload));
  const headers = new Map<number, CborValue>([[COSE_HEADER.x5chain, x5chain]]);
  return writeCbor({ tag: SIGN1_TAG, value: [protectedHeader, headers, payload, signature] });
}
