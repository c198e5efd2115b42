import { hash, randomBytes, randomInt, randomUUID } from 'node:crypto';
import pg from 'pg';

const hashOf = (text: string) => hash('sha256', text, 'buffer');

/** A request for presentations, and what an answer must have. */
export interface RawRequest {
  readonly id: string;
  readonly nonce: string;
  readonly state: string;
  readonly audience: string;
  readonly responseUri: string;
}

/** The tables of an issuer and a verifier; each method is one statement, and each write one commit. */
export class RawStore {
  readonly #pool: pg.Pool;
  readonly #schema: string;

  private constructor(pool: pg.Pool, schema: string) {
    this.#pool = pool;
    this.#schema = schema;
  }

  static async open(connectionString: string, schema: string): Promise<RawStore> {
    const pool = new pg.Pool({ connectionString, max: 10 });
    await pool.query(`
      drop schema if exists ${schema} cascade;
      create schema ${schema};
      create table ${schema}.offers (code_hash bytea primary key, claims text not null);
      create table ${schema}.tokens (
        token_hash bytea primary key, claims text not null, issued int not null default 0);
      create table ${schema}.used (value_hash bytea primary key);
      create table ${schema}.credentials (
        id uuid primary key, holder text not null, list_index int unique, issued_at timestamptz not null);
      create table ${schema}.requests (
        id uuid primary key, nonce text not null, state text not null, audience text not null,
        response_uri text not null, verdict jsonb)`);
    return new RawStore(pool, schema);
  }

  /** Codes of new offers. */
  async offer(count: number, claims: string): Promise<readonly string[]> {
    const codes = Array.from({ length: count }, () => randomBytes(32).toString('base64url'));
    await this.#pool.query(`insert into ${this.#schema}.offers select unnest($1::bytea[]), $2`, [
      codes.map(hashOf),
      claims,
    ]);
    return codes;
  }

  async addRequests(requests: readonly RawRequest[]): Promise<void> {
    const columns = [
      requests.map(({ id }) => id),
      requests.map(({ nonce }) => nonce),
      requests.map(({ state }) => state),
      requests.map(({ audience }) => audience),
      requests.map(({ responseUri }) => responseUri),
    ];
    await this.#pool.query(
      `insert into ${this.#schema}.requests
       select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[])`,
      columns,
    );
  }

  /** An access token for a code, which serves once. */
  async exchange(code: string): Promise<string> {
    const token = randomBytes(32).toString('base64url');
    const { rowCount } = await this.#pool.query(
      `with taken as (delete from ${this.#schema}.offers where code_hash = $1 returning claims)
       insert into ${this.#schema}.tokens (token_hash, claims) select $2, claims from taken`,
      [hashOf(code), hashOf(token)],
    );
    if (rowCount !== 1) throw new Error('the code is not known');
    return token;
  }

  async findClaims(token: string): Promise<Readonly<Record<string, unknown>>> {
    const text = `select claims from ${this.#schema}.tokens where token_hash = $1 and issued < 10`;
    const { rows } = await this.#pool.query<{ claims: string }>(text, [hashOf(token)]);
    if (rows[0] === undefined) throw new Error('the token is not known');
    return JSON.parse(rows[0].claims);
  }

  /** Uses up the nonce, counts, and writes the credentials. */
  async issue(token: string, nonce: string, holders: readonly Issued[]): Promise<void> {
    await this.#pool.query(
      `with used as (insert into ${this.#schema}.used values ($1)),
         counted as (update ${this.#schema}.tokens set issued = issued + $3 where token_hash = $2)
       insert into ${this.#schema}.credentials
       select id, holder, list_index, now() from unnest($4::uuid[], $5::text[], $6::int[]) as t (id, holder, list_index)`,
      [
        hashOf(nonce),
        hashOf(token),
        holders.length,
        holders.map(() => randomUUID()),
        holders.map(({ holder }) => holder),
        holders.map(({ index }) => index),
      ],
    );
  }

  async getRequest(id: string): Promise<RawRequest> {
    const { rows } = await this.#pool.query<RawRequest>(
      `select id, nonce, state, audience, response_uri as "responseUri"
       from ${this.#schema}.requests where id = $1 and verdict is null`,
      [id],
    );
    if (rows[0] === undefined) throw new Error('the request is not known, or was answered');
    return rows[0];
  }

  async answer(id: string, verdict: object): Promise<void> {
    const text = `update ${this.#schema}.requests set verdict = $2 where id = $1 and verdict is null`;
    const { rowCount } = await this.#pool.query(text, [id, JSON.stringify(verdict)]);
    if (rowCount !== 1) throw new Error('the request was answered');
  }
}

/** What is stored of a credential. */
interface Issued {
  readonly holder: string;
  readonly index: number;
}

/** A random place of a status list. */
export const drawPlace = (): number => randomInt(2 ** 31 - 1);
