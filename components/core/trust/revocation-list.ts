import { CLOCK_LEEWAY_SECONDS } from '../credential/presentation.ts';
import { verifyScheme } from '../crypto/signature-key.ts';
import {
  DER,
  type DerNode,
  derBitBytes,
  derBoolean,
  derBytes,
  derCount,
  derInner,
  derInteger,
  derSequence,
  derShortSequence,
  derTime,
  expectDer,
  readDer,
} from '../encoding/der.ts';
import { encodeHex } from '../encoding/hex.ts';
import { equalBytes } from '../encoding/text.ts';
import { AppError, isAppError, violation } from '../errors/errors.ts';
import { type Judgement, judge } from '../errors/judgement.ts';
import type { Certificate } from './certificate.ts';
import { distributionNames, revocationListNames } from './distribution-points.ts';
import type { RevocationVerdict } from './evaluate.ts';
import { type ExtensionList, readExtensions } from './extension-list.ts';
import { allowsKeyUsage, basicConstraintsOf, findExtension, KEY_USAGE } from './extensions.ts';
import { findAcceptedKey } from './path-certificates.ts';
import { findSignatureScheme } from './signature-algorithm.ts';

/** Which certificates of its issuer a list is about. */
interface ListScope {
  readonly covers: 'all' | 'leaves' | 'authorities';
  /** Names of the list, each a GeneralName in DER; undefined where it has none. */
  readonly names: readonly Uint8Array[] | undefined;
}

/** A complete list of revoked certificates whose signature is verified. */
export interface RevocationList {
  readonly thisUpdateMs: number;
  readonly nextUpdateMs: number;
  readonly scope: ListScope;
  /** Serial numbers in two's complement, lower-case hexadecimal. */
  readonly revoked: ReadonlySet<string>;
}

interface ListContext {
  /** Whose list it must be; a certificate of a valid path, or its anchor. */
  readonly issuer: Certificate;
  /** Time of verification, in milliseconds since the epoch. */
  readonly atMs: number;
}

/** Object identifiers of extensions of lists and entries (RFC 5280 sections 5.2 and 5.3). */
const LIST = {
  authorityKeyIdentifier: '2.5.29.35',
  number: '2.5.29.20',
  deltaIndicator: '2.5.29.27',
  issuingDistributionPoint: '2.5.29.28',
} as const;
const ENTRY = { reason: '2.5.29.21', invalidityDate: '2.5.29.24', certificateIssuer: '2.5.29.29' } as const;

const KNOWN_IN_LIST: ReadonlySet<string> = new Set(Object.values(LIST));
const KNOWN_IN_ENTRY: ReadonlySet<string> = new Set(Object.values(ENTRY));

const TAG_EXTENSIONS = 0xa0;
/** Bounds of what is read before the signature is verified. */
const MAX_MEMBERS = 7;
const MAX_ALGORITHM_BYTES = 256;
/** Members of IssuingDistributionPoint (section 5.2.5): its name, and the certificates that it is limited to. */
const TAG_NAME = 0xa0;
const COVERAGE: ReadonlyMap<number, ListScope['covers']> = new Map([
  [0x81, 'leaves'],
  [0x82, 'authorities'],
]);
const leewayMs = CLOCK_LEEWAY_SECONDS * 1000;

function refuse(message: string, cause?: unknown): never {
  const text = `The list of revoked certificates ${message}`;
  const violations = [violation('TRUST_CRL_UNAVAILABLE', text)];
  throw new AppError('unprocessable', 'TRUST_CRL_UNAVAILABLE', text, { cause, violations });
}

/** The parts of a TBSCertList, the entries not read yet. */
interface ListBody {
  readonly issuer: Uint8Array;
  readonly thisUpdate: DerNode | undefined;
  readonly nextUpdate: DerNode | undefined;
  readonly entries: DerNode | undefined;
  readonly extensions: DerNode | undefined;
}

const isTime = (node: DerNode | undefined): boolean =>
  node?.tag === DER.utcTime || node?.tag === DER.generalizedTime;

function splitBody(body: DerNode, algorithm: DerNode): ListBody {
  const members = [...derShortSequence(body, MAX_MEMBERS)];
  const hasVersion = members[0]?.tag === DER.integer;
  if (hasVersion && derCount(members.shift()) !== 1) refuse('is of another version than 2');
  const [inner, issuer, thisUpdate, ...rest] = members;
  if (inner === undefined || !equalBytes(derBytes(inner), derBytes(algorithm)))
    refuse('names two signature algorithms');
  const nextUpdate = isTime(rest[0]) ? rest.shift() : undefined;
  const entries = rest[0]?.tag === DER.sequence ? rest.shift() : undefined;
  const extensions = rest[0]?.tag === TAG_EXTENSIONS ? rest.shift() : undefined;
  if (rest.length > 0 || (extensions !== undefined && !hasVersion)) refuse('has other members');
  return { issuer: derBytes(expectDer(issuer, DER.sequence)), thisUpdate, nextUpdate, entries, extensions };
}

/** Reads the outer form and verifies the signature (RFC 5280 section 6.3.3 (f), (g)); entries are read later. */
function readSigned(der: Uint8Array, issuer: Certificate): ListBody {
  const whole = derShortSequence(readDer(der), MAX_MEMBERS);
  const [body, algorithm, signature] = whole;
  if (body === undefined || algorithm === undefined || whole.length !== 3) refuse('has no three parts');
  const list = splitBody(body, expectDer(algorithm, DER.sequence));
  if (!equalBytes(list.issuer, issuer.subject)) refuse('is of another issuer');
  if (!allowsKeyUsage(issuer, KEY_USAGE.crlSign)) refuse('is signed with a key that may sign no lists');
  const isShort = derBytes(algorithm).length <= MAX_ALGORITHM_BYTES;
  const scheme = isShort ? findSignatureScheme(algorithm) : undefined;
  const key = findAcceptedKey(issuer);
  if (scheme === undefined || key === undefined) refuse('is signed with an algorithm that is not accepted');
  if (!verifyScheme(scheme, key, derBytes(body), derBitBytes(signature)))
    refuse('is not signed by the issuer of the certificate');
  return list;
}

function judgeExtensions(extensions: ExtensionList, known: ReadonlySet<string>): void {
  for (const [oid, { isCritical }] of extensions) {
    if (isCritical && !known.has(oid)) refuse(`has the critical extension ${oid}, which is not supported`);
  }
}

/** The scope of a list (RFC 5280 section 5.2.5); those of some reasons, of attributes and indirect ones are refused. */
function readScope(extensions: ExtensionList): ListScope {
  const node = findExtension({ extensions }, LIST.issuingDistributionPoint);
  let covers: ListScope['covers'] = 'all';
  let names: ListScope['names'];
  for (const member of node === undefined ? [] : derSequence(node)) {
    const limit = COVERAGE.get(member.tag);
    if (member.tag === TAG_NAME) {
      names =
        distributionNames(member) ?? refuse('has a name relative to its issuer, which is not supported');
    } else if (limit !== undefined && covers === 'all' && derBoolean(member, member.tag)) {
      covers = limit;
    } else {
      refuse('is indirect, or about some reasons or attributes only');
    }
  }
  return { covers, names };
}

/** The serial number of an entry (RFC 5280 section 5.3). Every reason revokes, a hold too. */
function readEntry(node: DerNode): string {
  const [serial, revokedAt, extensions, ...more] = derSequence(node);
  // Since when it is revoked decides nothing here, and reading 100,000 times takes long.
  if (!isTime(revokedAt) || more.length > 0) refuse('has an entry with other members');
  // Some libraries write an empty list of extensions.
  if (extensions !== undefined && derSequence(extensions).length > 0) {
    const list = readExtensions(extensions);
    judgeExtensions(list, KNOWN_IN_ENTRY);
    if (list.has(ENTRY.certificateIssuer)) refuse('is indirect');
  }
  return encodeHex(derInteger(serial));
}

function readList(der: Uint8Array, { issuer, atMs }: ListContext): RevocationList {
  const body = readSigned(der, issuer);
  if (body.nextUpdate === undefined) refuse('has no next update');
  const [thisUpdateMs, nextUpdateMs] = [derTime(body.thisUpdate), derTime(body.nextUpdate)];
  if (thisUpdateMs > atMs + leewayMs) refuse('is of a later time');
  if (!isCurrent({ nextUpdateMs }, atMs)) refuse('has expired');
  const extensions: ExtensionList =
    body.extensions === undefined ? new Map() : readExtensions(derInner(body.extensions));
  judgeExtensions(extensions, KNOWN_IN_LIST);
  if (extensions.has(LIST.deltaIndicator)) refuse('is one of changes only');
  const scope = readScope(extensions);
  const revoked = new Set(body.entries === undefined ? [] : derSequence(body.entries).map(readEntry));
  return { thisUpdateMs, nextUpdateMs, scope, revoked };
}

/**
 * Verifies a list of revoked certificates (CRL, RFC 5280 sections 5 and 6.3.3): version 1 or 2, signed by the key of the
 * issuer, which may sign lists, complete and current. Entries are read after the signature was verified, in time that grows
 * as the list does. Refused are delta lists, indirect ones, those about some reasons, unknown critical extensions, and lists
 * without a next update.
 * @param der the list; its size is the caller's to limit
 * @returns TRUST_CRL_UNAVAILABLE
 */
export function verifyRevocationList(der: Uint8Array, context: ListContext): Judgement<RevocationList> {
  return judge(() => {
    try {
      return readList(der, context);
    } catch (error) {
      if (!isAppError(error, 'invalid')) throw error;
      return refuse(`is malformed (${error.message})`, error);
    }
  });
}

/** Whether the next update of a list is still to come; its last second counts as a whole. */
export function isCurrent({ nextUpdateMs }: Pick<RevocationList, 'nextUpdateMs'>, atMs: number): boolean {
  return atMs < nextUpdateMs + 1_000;
}

function isInScope({ covers, names }: ListScope, certificate: Certificate): boolean {
  const { isAuthority } = basicConstraintsOf(certificate);
  if (covers !== 'all' && (covers === 'authorities') !== isAuthority) return false;
  if (names === undefined) return true;
  const expected = revocationListNames(certificate);
  return names.some((name) => expected.some((each) => equalBytes(name, each)));
}

/**
 * What a list says of a certificate of its issuer. `Unavailable` where the list is about others: a part of the issuer's
 * certificates, or another name than the certificate has for its list (RFC 5280 section 6.3.3 (b) (2)).
 */
export function judgeRevocation(
  { scope, revoked }: RevocationList,
  certificate: Certificate,
): RevocationVerdict {
  if (!judge(() => isInScope(scope, certificate)).result) return 'Unavailable';
  return revoked.has(encodeHex(certificate.serial)) ? 'Revoked' : 'Good';
}
