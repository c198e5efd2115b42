import { beforeAll, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519, type Verifier } from '../../crypto/verify.ts';
import { canonicalJson } from '../../encoding/jcs.ts';
import { isAppError } from '../../errors/errors.ts';
import { at, owner, person } from '../governance/testing/scene.ts';
import { SealedRegister, sealTransaction } from '../verification/testing/sealed-register.ts';
import { type ExportFault, type ExportSummary, ExportVerifier, findExportFault } from './verify-export.ts';

/** A verifier with a cache, for many files that differ in one byte. */
function remembering(verifier: Verifier): Verifier {
  const verdicts = new Map<string, boolean>();
  const once = (key: string, verify: () => boolean): boolean => {
    const known = verdicts.get(key);
    if (known !== undefined) return known;
    const verdict = verify();
    verdicts.set(key, verdict);
    return verdict;
  };
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
  return {
    ...verifier,
    verify: (check) =>
      once(`${check.algorithm} ${hex(check.publicKey)} ${hex(check.message)} ${hex(check.signature)}`, () =>
        verifier.verify(check),
      ),
    verifyPreimage: (check) =>
      once(`${check.algorithm} ${hex(check.publicKey)} ${hex(check.preimage)} ${hex(check.signature)}`, () =>
        verifier.verifyPreimage(check),
      ),
  };
}

const verifier = remembering(createVerifier(nodeEd25519()));
const borrower = person(30, 'NISTP256');

/** Splits the bytes of a file into lines and verifies them. */
function verify(file: Uint8Array): ExportSummary {
  const verification = new ExportVerifier(verifier);
  let start = 0;
  for (let end = file.indexOf(10); end !== -1; end = file.indexOf(10, start)) {
    verification.take(file.subarray(start, end));
    start = end + 1;
  }
  if (start < file.length) throw new Error('the last line does not end');
  return verification.finish();
}

const bytesOf = (lines: readonly string[]) => Buffer.from(lines.join(''));

function faultIn(lines: readonly string[]): ExportFault {
  try {
    verify(bytesOf(lines));
  } catch (error) {
    const fault = findExportFault(error);
    if (fault !== undefined) return fault;
    throw error;
  }
  throw new Error('it verifies');
}

/** Whether a file verifies; only a refusal counts as failure. */
function passes(file: Uint8Array): boolean {
  try {
    verify(file);
    return true;
  } catch (error) {
    const cut = error instanceof Error && error.message === 'the last line does not end';
    const unknown = isAppError(error, 'invalid') && error.code === 'EXPORT_UNKNOWN';
    if (cut || unknown || findExportFault(error) !== undefined) return false;
    throw error;
  }
}

/** A copy of the lines with one of them changed. */
function withLine(lines: readonly string[], index: number, change: (value: never) => unknown): string[] {
  const changed = canonicalJson(change(JSON.parse(lines[index] ?? '') as never));
  return lines.with(index, `${changed}\n`);
}

describe('an export', () => {
  let register: SealedRegister;
  let lines: readonly string[];

  beforeAll(() => {
    register = new SealedRegister(2);
    const action = { blueprintId: 'loan', actionId: '0', type: 'Action' } as const;
    register.seal(
      sealTransaction(owner, { n: 1, text: 'zwölf €' }, { ...action, createdAt: at(30) }),
      sealTransaction(borrower, { n: 2 }, { ...action, createdAt: at(31), recipients: [owner.address] }),
    );
    register.seal(sealTransaction(owner, { n: 3 }, { ...action, createdAt: at(90) }));
    lines = register.lines();
  });

  it('verifies and gives a summary of its content', () => {
    const [genesis, , head] = register.dockets.map(({ docket }) => docket.header);
    expect(verify(bytesOf(lines))).toEqual({
      registerId: '0123456789abcdef0123456789abcdef',
      name: 'Loans',
      networkId: 'test.installation',
      dockets: 3,
      transactions: 4,
      genesisHash: genesis?.hash,
      headHash: head?.hash,
      sealedAt: at(120),
      validators: ['validator-0', 'validator-1'],
      cosigners: ['validator-0', 'validator-1'],
    });
  });

  it.each([
    ['any one byte', 1, 1],
    ['a letter in the other case', 0x20, 5],
  ])('fails with %s changed', { timeout: 120_000 }, (_what, change, stride) => {
    const small = new SealedRegister();
    small.seal(
      sealTransaction(owner, { n: 1 }, { type: 'Action', createdAt: at(30) }),
      sealTransaction(borrower, 'zwölf €', { type: 'Action', createdAt: at(31) }),
    );
    const file = bytesOf(small.lines());
    const passed: number[] = [];
    for (let place = 0; place < file.length; place += stride) {
      const copy = Buffer.from(file);
      copy[place] = (copy[place] ?? 0) ^ change;
      if (passes(copy)) passed.push(place);
    }
    expect(file.length).toBeGreaterThan(8_000);
    expect(passed).toEqual([]);
  });

  it('names the first fault', () => {
    const second = register.dockets[1];
    const ids = second?.docket.header.transactionIds ?? [];
    const changed = (lines[5] ?? '').replace('"payload":"eyJ', '"payload":"eyK');
    expect(faultIn(lines.with(5, changed))).toMatchObject({
      line: 6,
      docketNumber: 1,
      txId: ids[1],
      code: 'VAL_HASH_001',
    });
    const round = withLine(lines, 6, (value: { certificate: object }) => ({
      ...value,
      certificate: { ...value.certificate, round: 1 },
    }));
    expect(faultIn(round)).toMatchObject({ line: 7, docketNumber: 2, code: 'VAL_CERT_002' });
    expect(faultIn(lines.with(4, ' \n'))).toMatchObject({ line: 5, docketNumber: 1, txId: ids[0] });
  });

  it('fails with a line missing, doubled or moved', () => {
    for (let index = 1; index < lines.length; index += 1) {
      expect(faultIn(lines.toSpliced(index, 1)).line).toBeGreaterThan(0);
      expect(faultIn(lines.toSpliced(index, 0, lines[index] ?? '')).line).toBeGreaterThan(0);
    }
    const swapped = lines.with(4, lines[5] ?? '').with(5, lines[4] ?? '');
    expect(faultIn(swapped)).toMatchObject({ line: 5, docketNumber: 1 });
    expect(faultIn(lines.slice(0, -1)).message).toContain('not whole');
  });

  it('fails with another spelling of the same content', () => {
    const spaced = (lines[1] ?? '').replace('{', '{ ');
    expect(faultIn(lines.with(1, spaced)).message).toContain('canonical');
    const unsorted = (lines[2] ?? '').replace(/^\{("payload":"[^"]*"),("record":"[^"]*")\}/, '{$2,$1}');
    expect(faultIn(lines.with(2, unsorted)).message).toContain('canonical');
    const more = withLine(lines, 2, (value: object) => ({ ...value, note: 'x' }));
    expect(faultIn(more).line).toBe(3);
    const unpadded = (lines[3] ?? '').replace('=="', '"');
    expect(unpadded).not.toBe(lines[3]);
    expect(faultIn(lines.with(3, unpadded)).line).toBe(4);
  });

  it('fails with a checkpoint that a foreign key signed as well, or one validator twice', () => {
    const [body = '', signatures = ''] = register.checkpoint().split('\n\n');
    const noted = (text: string) =>
      faultIn(withLine(lines, lines.length - 1, (value: object) => ({ ...value, checkpoint: text })));
    const [log = '', first = '', second = ''] = signatures.trimEnd().split('\n');
    const note = (...each: string[]) => `${body}\n\n${each.join('\n')}\n`;
    const stranger = second.replace('validator-1', 'validator-9');
    expect(noted(note(log, first, stranger)).code).toBe('CHECKPOINT_INVALID');
    expect(noted(note(log, first, first)).code).toBe('CHECKPOINT_INVALID');
    expect(noted(note(first, second)).code).toBe('CHECKPOINT_INVALID');
    const alone = withLine(lines, lines.length - 1, (value: object) => ({ ...value, checkpoint: note(log) }));
    expect(verify(bytesOf(alone)).cosigners).toEqual([]);
  });

  it('is distinguished from a file that is no export', () => {
    for (const text of ['', 'x\n', '{}\n', `${lines[1]}`, '{"export":{"format":"other"}}\n']) {
      expect(() => verify(Buffer.from(text))).toThrow(
        expect.objectContaining({ kind: 'invalid', code: 'EXPORT_UNKNOWN' }),
      );
    }
  });
});
