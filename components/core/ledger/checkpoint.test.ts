import { describe, expect, it } from 'vitest';
import { createSigner } from '../crypto/sign.ts';
import { createVerifier, nodeEd25519 } from '../crypto/verify.ts';
import { utf8 } from '../encoding/text.ts';
import {
  checkpointBody,
  checkpointNote,
  cosignatureBlob,
  cosignatureBytes,
  findCheckpoint,
  type NoteKey,
  noteLine,
  parseCheckpoint,
  parseVerifierKey,
  verifierKey,
  verifyCheckpoint,
} from './checkpoint.ts';

const signer = createSigner({ algorithm: 'ED25519', privateKey: new Uint8Array(32).fill(4) });
const key: NoteKey = { name: 'acme/registers/a', kind: 1, publicKey: signer.publicKey };
const witness: NoteKey = { ...key, name: 'validator-0', kind: 4 };
const rootHash = new Uint8Array(32).fill(9);
const body = checkpointBody({ origin: key.name, size: 12, rootHash });
const line = noteLine(key, signer.sign(utf8(body)));
const note = checkpointNote(body, [line]);
const verifier = createVerifier(nodeEd25519());

describe('checkpoint', () => {
  it('the example key of the C2SP signed-note specification parses and is written back', () => {
    const text = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
    expect(verifierKey(parseVerifierKey(text))).toBe(text);
  });

  it.each([
    ['no signatures', body],
    ['no empty line', `${body}${line}`],
    ['two lines', `a\n1\n\n${line}`],
    ['four lines', `${body}extra\n\n${line}`],
    ['a size with a zero in front', note.replace('\n12\n', '\n012\n')],
    ['a negative size', note.replace('\n12\n', '\n-12\n')],
    ['a size beyond what is safe', note.replace('\n12\n', '\n99999999999999999999\n')],
    ['a short root', note.replace(/CQkJ/, '')],
    ['an empty origin', note.replace(key.name, '')],
    ['another dash', note.replace('\u2014', '-')],
    ['no last newline', note.slice(0, -1)],
    ['text after the signatures', `${note}more\n`],
    ['an empty line of a signature', `${note}\n`],
    ['a signature that is too short', `${body}\n\u2014 ${key.name} AAAA\n`],
  ])('with %s is refused', (_name, text) => {
    expect(() => parseCheckpoint(text)).toThrow(expect.objectContaining({ kind: 'invalid' }));
    expect(findCheckpoint(text)).toBeUndefined();
  });

  it('lines of unknown keys are ignored, a false line of a known key is refused', () => {
    const stranger = noteLine({ ...key, publicKey: new Uint8Array(32).fill(1) }, new Uint8Array(64));
    const forged = noteLine(key, new Uint8Array(64));
    const judged = (...lines: readonly string[]): boolean =>
      verifyCheckpoint(verifier, parseCheckpoint(checkpointNote(body, lines)), key);
    expect(judged(stranger, line)).toBe(true);
    expect(judged(stranger)).toBe(false);
    expect(judged(forged)).toBe(false);
    expect(judged(line, forged)).toBe(false);
  });

  it('a cosignature covers its time and is no log signature', () => {
    const signed = signer.sign(cosignatureBytes(body, 1000));
    const judged = (blob: Uint8Array, by: NoteKey = witness): boolean =>
      verifyCheckpoint(verifier, parseCheckpoint(checkpointNote(body, [noteLine(by, blob)])), by);
    expect(judged(cosignatureBlob(1000, signed))).toBe(true);
    expect(judged(cosignatureBlob(1001, signed))).toBe(false);
    expect(judged(signed)).toBe(false);
    expect(judged(signed, key)).toBe(false);
    expect(judged(Buffer.concat([Buffer.alloc(8, 0xff), signed]))).toBe(false);
  });

  it.each([
    '',
    'a',
    'a+00000000+AQ==',
    `${verifierKey(key)}=`,
    verifierKey(key).replace(/\+[0-9a-f]{8}\+/, '+00000000+'),
  ])('the verifier key %j is refused', (text) => {
    expect(() => parseVerifierKey(text)).toThrow(expect.objectContaining({ kind: 'invalid' }));
  });

  it('names and bodies that would break a note are refused', () => {
    for (const name of ['', 'a b', 'a+b', 'a\nb']) {
      expect(() => noteLine({ ...key, name }, rootHash)).toThrow(
        expect.objectContaining({ code: 'INVALID_CHECKPOINT' }),
      );
    }
    for (const wrong of [
      { origin: 'a\nb' },
      { origin: '' },
      { size: -1 },
      { size: 0.5 },
      { rootHash: rootHash.subarray(1) },
    ]) {
      expect(() => checkpointBody({ origin: 'a', size: 1, rootHash, ...wrong })).toThrow(
        expect.objectContaining({ code: 'INVALID_CHECKPOINT' }),
      );
    }
  });
});
