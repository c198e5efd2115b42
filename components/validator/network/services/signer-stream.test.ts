import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { createLogger } from '#kit/log/log.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { SignConsensusResponse } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { SignerStream } from './signer-stream.ts';

const log = createLogger({ service: 'test', level: 'silent' });
type Result = SignConsensusResponse['result'];
type Sent = { requestId?: bigint; publicKey?: string; message?: { case?: string | undefined } };

/** One open stream as the signing component sees it. */
class FakeStream {
  readonly sent: Sent[] = [];
  readonly #queue: (SignConsensusResponse | 'end')[] = [];
  #wake: () => void = () => {};

  answer(requestId: bigint, result: unknown): void {
    this.#push({ requestId, result: result as Result } as SignConsensusResponse);
  }

  end(): void {
    this.#push('end');
  }

  #push(item: SignConsensusResponse | 'end'): void {
    this.#queue.push(item);
    this.#wake();
  }

  readonly stream = {
    send: async (message: Sent) => {
      this.sent.push(message);
    },
    close: () => this.end(),
    cancel: () => this.end(),
    responses: this.#read(),
  };

  async *#read(): AsyncGenerator<SignConsensusResponse> {
    for (;;) {
      const next = this.#queue.shift();
      if (next === 'end') return;
      if (next !== undefined) yield next;
      else {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        await promise;
      }
    }
  }
}

function setUp() {
  const streams: FakeStream[] = [];
  const fenced: AppError[] = [];
  const signer = new SignerStream({
    wallet: {
      signConsensus: {
        open: async () => {
          const fake = new FakeStream();
          streams.push(fake);
          return fake.stream as never;
        },
      },
    },
    validatorId: 'validator-0',
    log,
    onFenced: (error) => fenced.push(error),
  });
  const stream = (index: number) => waitFor(() => streams[index]);
  const opened = (publicKey = 'key') => ({
    case: 'opened',
    value: { epoch: 1n, key: { publicKey, walletAddress: 'w1' } },
  });
  return { signer, stream, fenced, opened };
}

const possession = { kind: 'possession', registerId: '01'.repeat(16) } as const;
const signedWith = (byte: number) => ({ case: 'signed', value: { signature: Uint8Array.of(byte) } });

describe('the stream to the signer', () => {
  it('opens with its identity, then matches each answer to its request', async () => {
    const { signer, stream, opened } = setUp();
    const started = signer.start();
    const first = await stream(0);
    await waitFor(() => first.sent.length === 1);
    const value = { validatorId: 'validator-0', epoch: 0n };
    expect(first.sent[0]).toMatchObject({ message: { case: 'open', value } });
    expect(() => signer.assertOpen()).toThrow();
    first.answer(0n, opened());
    expect(await started).toEqual({ publicKey: 'key', walletAddress: 'w1' });
    signer.assertOpen();
    const answers = [signer.sign(possession), signer.sign(possession)];
    first.answer(2n, signedWith(2));
    first.answer(1n, signedWith(1));
    expect(await Promise.all(answers)).toEqual([Uint8Array.of(1), Uint8Array.of(2)]);
    signer.stop();
  });

  it('repeats pending requests on a new stream', async () => {
    const { signer, stream, opened } = setUp();
    void signer.start();
    const first = await stream(0);
    first.answer(0n, opened());
    await waitFor(() => first.sent.length === 1);
    const answer = signer.sign(possession);
    first.end();
    const second = await stream(1);
    await waitFor(() => second.sent.length === 1);
    expect(second.sent[0]).toMatchObject({ message: { value: { validatorId: 'validator-0', epoch: 1n } } });
    second.answer(0n, opened());
    await waitFor(() => second.sent.some(({ requestId }) => requestId === 1n));
    second.answer(1n, signedWith(7));
    expect(await answer).toEqual(Uint8Array.of(7));
    signer.stop();
  });

  it('refuses one message and continues', async () => {
    const { signer, stream, opened } = setUp();
    void signer.start();
    const first = await stream(0);
    first.answer(0n, opened());
    const refused = signer.sign(possession);
    first.answer(1n, { case: 'refusal', value: { code: 'DOUBLE_SIGN_REFUSED', message: 'no' } });
    await expect(refused).rejects.toMatchObject({ kind: 'conflict', code: 'DOUBLE_SIGN_REFUSED' });
    const next = signer.sign(possession);
    first.answer(2n, signedWith(3));
    expect(await next).toEqual(Uint8Array.of(3));
    signer.stop();
  });

  it('signs with the named key, and knows the newest one also after it was created', async () => {
    const { signer, stream } = setUp();
    void signer.start();
    const first = await stream(0);
    const keyOf = (publicKey: string) => ({ publicKey, walletAddress: `w-${publicKey}` });
    first.answer(0n, { case: 'opened', value: { epoch: 1n, key: keyOf('one'), newestKey: keyOf('two') } });
    await waitFor(() => first.sent.length === 1);
    await waitFor(() => signer.newestKey.publicKey === 'two');
    const signed = signer.sign(possession, 'two');
    expect(first.sent[1]).toMatchObject({ publicKey: 'two', message: { case: 'possession' } });
    first.answer(1n, signedWith(1));
    await signed;
    const older = signer.nextKey('one');
    first.answer(2n, { case: 'key', value: keyOf('two') });
    expect(await older).toEqual(keyOf('two'));
    const made = signer.nextKey('two');
    first.answer(3n, { case: 'key', value: keyOf('three') });
    await made;
    expect([signer.key, signer.newestKey]).toEqual([keyOf('one'), keyOf('three')]);
    const unknown = signer.sign(possession, 'four');
    first.answer(4n, { case: 'refusal', value: { code: 'SIGNING_KEY_UNKNOWN', message: 'no' } });
    await expect(unknown).rejects.toMatchObject({ kind: 'not_found', code: 'SIGNING_KEY_UNKNOWN' });
    const strange = signer.nextKey('three');
    first.answer(5n, signedWith(1));
    await expect(strange).rejects.toMatchObject({ code: 'SIGNER_UNAVAILABLE' });
    signer.stop();
  });

  it('sends a batch in one request, once the component says that it signs batches', async () => {
    const { signer, stream, opened } = setUp();
    void signer.start();
    const first = await stream(0);
    first.answer(0n, opened());
    await waitFor(() => first.sent.length === 1);
    expect(signer.signsBatches).toBe(false);
    first.end();
    const second = await stream(1);
    const { value } = opened();
    second.answer(0n, { case: 'opened', value: { ...value, signsBatches: true } });
    await waitFor(() => signer.signsBatches);
    const attestation = {
      ...possession,
      kind: 'attestation',
      docketHash: 'a',
      approved: true,
      timestamp: 't',
    } as const;
    const messages = [
      { type: 1, height: 5 },
      { type: 2, height: 5 },
    ] as never;
    const bytes = [Uint8Array.of(1), Uint8Array.of(2), Uint8Array.of(3)] as const;
    const [one, two, three] = bytes;
    const signed = signer.signBatch({ messages, attestation }, 'key-2');
    await waitFor(() => second.sent.length === 2);
    expect(second.sent[1]).toMatchObject({
      publicKey: 'key-2',
      message: {
        case: 'batch',
        value: { messages: [{ height: 5n }, { height: 5n }], attestation: { docketHash: 'a' } },
      },
    });
    second.answer(1n, { case: 'batch', value: { signatures: [one, two], attestationSignature: three } });
    expect(await signed).toEqual({ messages: [one, two], attestation: three });
    const incomplete = [
      { signatures: [one], attestationSignature: new Uint8Array() },
      { signatures: [one, two], attestationSignature: three },
    ];
    for (const [index, answer] of incomplete.entries()) {
      const asked = signer.signBatch({ messages });
      second.answer(BigInt(index + 2), { case: 'batch', value: answer });
      await expect(asked).rejects.toMatchObject({ code: 'SIGNER_UNAVAILABLE' });
    }
    const refused = signer.signBatch({ messages });
    second.answer(4n, { case: 'refusal', value: { code: 'INVALID_REQUEST', message: 'no known type' } });
    await expect(refused).rejects.toMatchObject({ kind: 'invalid', code: 'INVALID_REQUEST' });
    signer.stop();
  });

  it('stops for good when it is fenced, when opening is refused, and when the key differs', async () => {
    const cases: ((fake: FakeStream, opened: (key?: string) => unknown) => void)[] = [
      (fake) => fake.answer(1n, { case: 'refusal', value: { code: 'SIGNER_FENCED', message: 'newer' } }),
      (fake) => fake.answer(0n, { case: 'refusal', value: { code: 'SIGNER_FENCED', message: 'newer' } }),
      (fake) => fake.answer(0n, { case: 'refusal', value: { code: 'SIGNING_NOT_ALLOWED', message: 'no' } }),
      (fake, opened) => fake.answer(0n, opened('another')),
    ];
    for (const act of cases) {
      const { signer, stream, fenced, opened } = setUp();
      const started = signer.start();
      const fake = await stream(0);
      fake.answer(0n, opened());
      await started;
      const pending = signer.sign(possession);
      signer.assertHeld();
      act(fake, opened);
      await expect(pending).rejects.toBeInstanceOf(AppError);
      expect(fenced).toHaveLength(1);
      expect(() => signer.assertOpen()).toThrow();
      expect(() => signer.assertHeld()).toThrow();
      await expect(signer.sign(possession)).rejects.toMatchObject({ kind: 'forbidden' });
    }
  });

  it('rejects pending requests when the validator stops', async () => {
    const { signer, stream, opened } = setUp();
    void signer.start();
    (await stream(0)).answer(0n, opened());
    const pending = signer.sign(possession);
    signer.stop();
    await expect(pending).rejects.toMatchObject({ code: 'SIGNER_UNAVAILABLE' });
    signer.assertHeld();
  });
});
