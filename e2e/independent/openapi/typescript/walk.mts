// From sign-in to an inclusion proof with openapi-fetch and the types that openapi-typescript made of the document. Each
// answer is judged by its schema in the document. Arguments: the document, the gateway's URL, e-mail, password file.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import createClient, { type Middleware } from 'openapi-fetch';
import type { paths } from './api.d.ts';

const [documentPath = '', baseUrl = '', email = '', passwordFile = ''] = process.argv.slice(2);
const document = JSON.parse(readFileSync(documentPath, 'utf8'));

const counts = { passed: 0, failed: 0, judged: 0 };

function check(name: string, holds: boolean, shown: unknown = ''): void {
  counts[holds ? 'passed' : 'failed'] += 1;
  process.stdout.write(
    `  ${holds ? 'ok  ' : 'FAIL'} ${name}${holds ? '' : `: ${JSON.stringify(shown).slice(0, 600)}`}\n`,
  );
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema(document, 'document');

const pointer = (...names: readonly string[]): string =>
  `document#${names.map((name) => `/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')}`;

/** Judges every answer by the schema of its status and media type. */
const judge: Middleware = {
  async onResponse({ request, response, schemaPath }) {
    const method = request.method.toLowerCase();
    const { responses } = document.paths[schemaPath][method];
    const status = responses[response.status] === undefined ? 'default' : String(response.status);
    const mediaType = (response.headers.get('content-type') ?? '').split(';', 1)[0] ?? '';
    const name = `${method.toUpperCase()} ${schemaPath} ${response.status}`;
    const content = responses[status]?.content;
    if (content === undefined) return void check(`${name}: no body`, (await response.clone().text()) === '');
    counts.judged += 1;
    if (content[mediaType] === undefined) return void check(`${name} declares ${mediaType}`, false, content);
    if (!mediaType.includes('json') || mediaType.includes('ndjson')) return;
    const where = pointer('paths', schemaPath, method, 'responses', status, 'content', mediaType, 'schema');
    const validate = ajv.getSchema(where);
    const value = await response.clone().json();
    if (validate?.(value) !== true) check(`${name} is as declared`, false, [validate?.errors, value]);
  },
};

const client = createClient<paths>({ baseUrl });
client.use(judge);

type Got<T> = { readonly data?: T; readonly error?: unknown; readonly response: Response };

/** The body of an answer of success; ends the walk for any other one. */
async function ok<T>(answer: Promise<Got<T>>): Promise<NonNullable<T>> {
  const { data, error, response } = await answer;
  if (data !== undefined && data !== null) return data;
  throw new Error(`${response.url} answered ${response.status}: ${JSON.stringify(error)}`);
}

async function until<T>(what: string, find: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) {
    const found = await find();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${what}: not within 30 s`);
}

async function signIn(): Promise<void> {
  const password = readFileSync(passwordFile, 'utf8').trim();
  const tokens = await ok(client.POST('/api/auth/login', { body: { email, password } }));
  if (!('access_token' in tokens)) throw new Error(`the sign-in asks for a second factor: ${tokens.message}`);
  client.use({
    onRequest: ({ request }) => {
      request.headers.set('authorization', `Bearer ${tokens.access_token}`);
      return request;
    },
  });
  const me = await ok(client.GET('/api/auth/me'));
  check('signs in, and reads its own account', me.email === email, me);
}

async function createWallet() {
  const body = { title: 'Of a TypeScript client', keyType: 'ED25519' } as const;
  const wallet = await ok(client.POST('/api/wallets', { body }));
  const read = await ok(client.GET('/api/wallets/{id}', { params: { path: { id: wallet.id } } }));
  check('creates a wallet and reads it', read.walletAddress === wallet.walletAddress, read);
  return wallet;
}

type Wallet = Awaited<ReturnType<typeof createWallet>>;

async function createRegister(wallet: Wallet): Promise<string> {
  const owners = [{ walletAddress: wallet.walletAddress }];
  const begun = await ok(client.POST('/api/registers/initiate', { body: { title: 'Typed', owners } }));
  const signedAttestations = await Promise.all(
    begun.attestationsToSign.map(async ({ attestationData, dataToSign }) => {
      const data = Buffer.from(dataToSign, 'hex').toString('base64');
      const path = { id: wallet.id };
      const body = { data, algorithm: wallet.algorithm, isPreHashed: true };
      const { publicKey, signature, algorithm } = await ok(
        client.POST('/api/wallets/{id}/sign', { params: { path }, body }),
      );
      return { attestationData, publicKey, signature, algorithm };
    }),
  );
  const body = { registerId: begun.id, nonce: begun.nonce, signedAttestations };
  await ok(client.POST('/api/registers/finalize', { body }));
  const path = { registerId: begun.id, docketId: '0' };
  const docket = await until('the first docket', async () => {
    return (await client.GET('/api/registers/{registerId}/dockets/{docketId}', { params: { path } })).data;
  });
  check('creates a register that seals its first docket', docket.registerId === begun.id, docket);
  return begun.id;
}

async function submit(wallet: Wallet, registerId: string): Promise<string> {
  const payload = Buffer.from(JSON.stringify({ madeBy: 'openapi-fetch' })).toString('base64');
  const body = { senderAddress: wallet.walletAddress, payload, transactionType: 'Action', metadata: {} };
  const params = { path: { registerId }, query: { wait: 'confirmed', timeout: 30 } } as const;
  const { txId } = await ok(client.POST('/api/registers/{registerId}/transactions', { params, body }));
  const path = { registerId, txId };
  const found = await until('the transaction', async () => {
    const got = await ok(client.GET('/api/registers/{registerId}/transactions/{txId}', { params: { path } }));
    return got.status === 'confirmed' ? got : undefined;
  });
  check('submits a transaction that is sealed', found.senderAddress === wallet.walletAddress, found);
  return txId;
}

async function prove(registerId: string, txId: string): Promise<void> {
  const params = { path: { registerId, txId } };
  const transaction = '/api/registers/{registerId}/transactions/{txId}' as const;
  const proof = await ok(client.GET(`${transaction}/inclusion-proof`, { params }));
  const record = await client.GET(`${transaction}/record`, { params, parseAs: 'text' });
  const leaf = createHash('sha256')
    .update('\0')
    .update(record.data ?? '')
    .digest('hex');
  check('reads a record, and its leaf in the proof of its inclusion', proof.transactionHash === leaf, [
    proof,
    leaf,
  ]);
  const head = { registerId, docketId: 'latest' };
  const latest = await ok(
    client.GET('/api/registers/{registerId}/dockets/{docketId}', { params: { path: head } }),
  );
  check('reads the last docket', latest.docketNumber >= 1, latest);
  const list = { path: { registerId }, query: { pageSize: 5 } } as const;
  const listed = await ok(client.GET('/api/registers/{registerId}/transactions', { params: list }));
  check('lists transactions', listed.items.length === 2, listed);
}

async function readRefusals(registerId: string): Promise<void> {
  const path = { registerId, txId: '0'.repeat(64) };
  const { error } = await client.GET('/api/registers/{registerId}/transactions/{txId}', { params: { path } });
  check('reads a refusal as a problem with its code', error?.code === 'TX_NOT_FOUND', error);
}

try {
  await signIn();
  const wallet = await createWallet();
  const registerId = await createRegister(wallet);
  const txId = await submit(wallet, registerId);
  await prove(registerId, txId);
  await readRefusals(registerId);
  check(`judges each answer by its schema (${counts.judged})`, counts.judged > 12);
} catch (error) {
  check('the walk ends', false, String(error));
}
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`);
process.exitCode = counts.failed === 0 ? 0 : 1;
