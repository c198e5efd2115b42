import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import pg from 'pg';
import { unwrap } from '../key-wrap.ts';
import { createTokenCheck } from '../token.ts';
import { serveFrames } from '../wire.ts';
import { decrypt, encrypt } from './groups.ts';
import { roles } from './site-permit.ts';

/**
 * The minimum of the wallet service for workflows: one select a call, keys encrypted at rest, Ed25519 signatures, and
 * content keys unwrapped one after the other. A wallet has the name of its owner. Settings: {key, cert, ca, databaseUrl,
 * schema, clientKey, delegationKey}, the latter two the public keys of tokens as PEM. A frame is a JSON request with its
 * `ask`, the answer is {value} or {error}.
 */

const settings = JSON.parse(process.argv[2] ?? '{}');
const keyEncryptionKey = randomBytes(32);
const checkClient = createTokenCheck(settings.clientKey);
const checkDelegation = createTokenCheck(settings.delegationKey);
const database = new pg.Pool({
  connectionString: settings.databaseUrl,
  options: `-c search_path=${settings.schema}`,
  max: 4,
});
// The database or the benchmark may end first.
database.on('error', () => process.exit(0));
process.once('disconnect', () => process.exit(0));

await database.query(`create schema ${settings.schema}`);
await database.query(
  'create table raw_wallets (name text primary key, owner text, public_key text, x text, signing_key bytea, agreement_key bytea)',
);
await database.query('create index on raw_wallets (owner)');
for (const name of roles) {
  const [signing, agreement] = [generateKeyPairSync('ed25519'), generateKeyPairSync('x25519')];
  const raw = Buffer.from(signing.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  const values = [
    ...[name, name, raw.toString('base64'), agreement.publicKey.export({ format: 'jwk' }).x],
    ...[signing, agreement].map(({ privateKey }) => sealedKey(privateKey)),
  ];
  await database.query('insert into raw_wallets values ($1, $2, $3, $4, $5, $6)', values);
}

function sealedKey(key: KeyObject): Buffer {
  return encrypt(keyEncryptionKey, key.export({ type: 'pkcs8', format: 'der' }));
}

async function keyOf(column: 'signing_key' | 'agreement_key', wallet: string): Promise<KeyObject> {
  const query = { name: column, text: `select ${column} as sealed from raw_wallets where name = $1` };
  const { rows } = await database.query({ ...query, values: [wallet] });
  const key = decrypt(keyEncryptionKey, rows[0].sealed);
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

interface WalletRequest {
  readonly token: string;
  readonly wallet: string;
  readonly wallets: readonly string[];
  /** Hexadecimal. */
  readonly digest: string;
  readonly keys: readonly { readonly x: string; readonly encryptedKey: string }[];
}

const asks: Readonly<Record<string, (request: WalletRequest) => Promise<unknown>>> = {
  /** The wallets of the owner of a token, with their public keys. */
  owned: async ({ token }) => {
    const text = 'select name, public_key from raw_wallets where owner = $1';
    return (await database.query({ name: 'owned', text, values: [checkClient(token).sub] })).rows;
  },
  /** Encryption keys. */
  keys: async ({ wallets }) => {
    const text = 'select name, x from raw_wallets where name = any($1)';
    return (await database.query({ name: 'keys', text, values: [wallets] })).rows;
  },
  sign: async ({ token, wallet, digest }) => {
    checkDelegation(token);
    const key = await keyOf('signing_key', wallet);
    return sign(null, Buffer.from(digest, 'hex'), key).toString('base64');
  },
  unwrap: async ({ token, wallet, keys }) => {
    checkDelegation(token);
    const key = await keyOf('agreement_key', wallet);
    return keys.map(({ x, encryptedKey }) =>
      unwrap(key, { x, encryptedKey: Buffer.from(encryptedKey, 'base64url') }).toString('base64url'),
    );
  },
};

const port = await serveFrames(settings, async (frame) => {
  const { ask, ...request } = JSON.parse(frame.toString());
  const act = asks[ask] ?? (() => Promise.reject(new RangeError(`${ask} cannot be asked`)));
  const answer = await act(request).then(
    (value) => ({ value }),
    (error: unknown) => ({ error: String(error) }),
  );
  return Buffer.from(JSON.stringify(answer));
});
process.send?.(String(port));
