import { sign } from 'node:crypto';
import {
  ALGORITHM,
  chainTimeMs,
  dayMs,
  extension,
  type TestAlgorithm,
  type TestKey,
  uriName,
} from './chains.ts';
import { bits, der, integer, sequence, time } from './der-writer.ts';

/** One entry; the extensions are those of the entry. */
interface TestEntry {
  readonly serial: number;
  readonly extensions?: readonly Buffer[];
}

/** What a list says; the issuer is a name in DER. */
export interface ListSpec {
  readonly issuer: Uint8Array;
  readonly signer: TestKey;
  readonly thisUpdateMs?: number;
  /** Null for a list without one. */
  readonly nextUpdateMs?: number | null;
  readonly entries?: readonly TestEntry[];
  readonly extensions?: readonly Buffer[];
  readonly algorithm?: TestAlgorithm;
  /** Null for a list of the first version. */
  readonly version?: number | null;
}

/** Writes and signs a list of revoked certificates. */
export function listDer(spec: ListSpec): Buffer {
  const { thisUpdateMs = chainTimeMs - dayMs, nextUpdateMs = chainTimeMs + dayMs, version = 2 } = spec;
  const { entries = [], extensions = [], algorithm = ALGORITHM.ecdsaSha256 } = spec;
  const revoked = entries.map((entry) =>
    sequence(
      integer(entry.serial),
      time(thisUpdateMs),
      ...(entry.extensions === undefined ? [] : [sequence(...entry.extensions)]),
    ),
  );
  const body = sequence(
    ...(version === null ? [] : [integer(version - 1)]),
    algorithm.identifier,
    spec.issuer,
    time(thisUpdateMs),
    ...(nextUpdateMs === null ? [] : [time(nextUpdateMs)]),
    ...(revoked.length === 0 ? [] : [sequence(Buffer.concat(revoked))]),
    ...(extensions.length === 0 ? [] : [der(0xa0, sequence(...extensions))]),
  );
  return sequence(
    body,
    algorithm.identifier,
    bits(sign(algorithm.hash, body, { key: spec.signer.privateKey })),
  );
}

/** A distribution point with the addresses of one list; `limits` are its further members. */
export function distributionPoint(addresses: readonly string[], ...limits: readonly Buffer[]): Buffer {
  return sequence(der(0xa0, der(0xa0, ...addresses.map(uriName))), ...limits);
}

/** The extension that names the lists of a certificate. */
export const distributionPoints = (...points: readonly Buffer[]): Buffer =>
  extension('2.5.29.31', sequence(...points));

/** The extension that says which certificates a list is about. */
export const issuingPoint = (...members: readonly Buffer[]): Buffer =>
  extension('2.5.29.28', sequence(...members), true);
