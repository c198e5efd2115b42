import { isAppError } from '../../errors/errors.ts';
import { parseCertificate } from '../certificate.ts';
import { validatePath } from '../path.ts';
import { type ChainChanges, chainDers, chainTimeMs, dayMs, ecKey, rsaKey } from './chains.ts';
import { CLIENT_AUTH, type FlawedChain, type FlawKeys, flawedChains, soundChains } from './flaws.ts';

const keys: FlawKeys = { other: ecKey('P-256'), rsa: rsaKey(2048), weak: rsaKey(1024), p384: ecKey('P-384') };
const standard = Array.from({ length: 5 }, () => ecKey('P-256'));

/** A chain as every judge is given it: leaf first, without the anchor and what was left out. */
export interface JudgedChain {
  readonly name: string;
  readonly path: readonly Buffer[];
  readonly anchor: Buffer;
}

/** The same changes for chains of another time. */
function changesAt(atMs: number, levels: number, changes: ChainChanges): ChainChanges {
  const shifted = (ms: number) => ms - chainTimeMs + atMs;
  const changesOf = (level: number) => {
    const { notBeforeMs = chainTimeMs - 10 * dayMs, notAfterMs = chainTimeMs + 10 * dayMs } =
      changes[level] ?? {};
    return { ...changes[level], notBeforeMs: shifted(notBeforeMs), notAfterMs: shifted(notAfterMs) };
  };
  return Object.fromEntries(Array.from({ length: levels }, (_, level) => [level, changesOf(level)]));
}

/** Chains with one flaw each, and sound ones, that are valid at a time in whole seconds but for their flaw. */
export function judgedChains(atMs: number): Readonly<Record<'flawed' | 'sound', readonly JudgedChain[]>> {
  const made = ({ name, levels, changes, key, without = [] }: FlawedChain, index: number): JudgedChain => {
    const used = standard.slice(0, levels).map((each, level) => (level === key?.level ? key.key : each));
    const ders = chainDers(`chain ${index}`, used, changesAt(atMs, levels, changes));
    const anchor = ders.at(-1);
    if (anchor === undefined) throw new Error('no anchor');
    return { name, path: ders.slice(0, -1).filter((_, level) => !without.includes(level)), anchor };
  };
  const flawed = [...flawedChains(keys)];
  const all = [...flawed, ...soundChains(keys)].map(made);
  return { flawed: all.slice(0, flawed.length), sound: all.slice(flawed.length) };
}

/** Whether we accept a chain for TLS clients. */
export function isAccepted({ path, anchor }: JudgedChain, atMs: number): boolean {
  try {
    const certificates = path.map(parseCertificate);
    const purpose = { purpose: CLIENT_AUTH, whenAbsent: 'accept' } as const;
    const input = { path: certificates, anchors: [parseCertificate(anchor)], atMs, purpose };
    return validatePath(input).violations.length === 0;
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}
