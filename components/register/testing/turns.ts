import { type Turn, turnOf } from '#core/blueprint/testing/turns.ts';
import { memberDid } from '#core/ledger/did.ts';
import { type TestKey, testKey } from './keys.ts';
import type { TestRegister } from './register.ts';
import { type TransactionOptions, transaction } from './sealed.ts';

const owner = testKey(1);

/** Publishes a definition on a register of `admin`, without sealing; the id of the publication. */
export async function publish(
  register: TestRegister,
  registerId: string,
  blueprint: { readonly id: string },
): Promise<string> {
  const { status, body, text } = await register.call(
    'POST',
    `/api/registers/${registerId}/blueprints/publish`,
    {
      token: 'blueprint',
      body: {
        blueprintId: blueprint.id,
        blueprint,
        publishedBy: 'did:platform:w:someone',
        callerDid: memberDid(owner.walletAddress),
      },
    },
  );
  if (status !== 200) throw new Error(text);
  return body.publicationTxId;
}

/** A step of the definition `turns`, signed by its sender. */
export function turn(
  registerId: string,
  options: Turn & { readonly key: TestKey; readonly previous: string } & Partial<
      Pick<TransactionOptions, 'payload'>
    >,
) {
  const { key, previous, payload = { n: options.seq, instance: options.instanceId }, ...facts } = options;
  return transaction({ registerId, key, payload, previousTransactionId: previous, ...turnOf(facts) });
}
