import { inParallel } from '../../harness/wait.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import { perCpuSecond } from '../ways-in/tenant.ts';
import type { Lengths } from '../workflows/lengths.ts';
import {
  bySides,
  type Exchange,
  type ExchangeSide,
  type HolderKey,
  holderKey,
  openExchange,
} from './exchange.ts';

const inFlight = 8;
/** Credentials that a token gives at most. */
const ofToken = 10;

/** A request for credentials, ready to be sent. */
interface Prepared {
  readonly token: string;
  readonly body: object;
}

/**
 * SD-JWT VCs with ten claims from the credential service, per CPU second of its process: `/credential` with one proof; token,
 * nonce and credential; ten proofs at once against one.
 */
export async function issuing(stage: Stage, lengths: Lengths): Promise<readonly Row[]> {
  const exchange = await openExchange(stage, 'issuing');
  try {
    const single = await bySides(lengths, () => requests(exchange, lengths.credentials, 1));
    const flow = await bySides(lengths, () => flows(exchange, lengths.credentials));
    const batch = await bySides(lengths, () => batches(exchange, lengths.credentials));
    return [
      {
        measure: 'credentials with one proof per CPU second',
        ...single,
        unit: '/s',
        bound: { kind: 'share', atLeast: 0.55 },
      },
      {
        measure: 'token, nonce and credential per CPU second',
        ...flow,
        unit: '/s',
        bound: { kind: 'share', atLeast: 0.55 },
      },
      {
        measure: 'CPU for a credential in a batch of ten, against a single one',
        ...batch,
        unit: 'us',
        bound: { kind: 'multiple', atMost: 0.75 },
      },
    ];
  } finally {
    await exchange.close();
  }
}

/** Requests of `proofs` proofs each for so many credentials; every token is used up. */
async function prepare(
  side: ExchangeSide,
  { configurationId }: Exchange,
  { codes, proofs }: { readonly codes: readonly string[]; readonly proofs: number },
): Promise<readonly Prepared[]> {
  const tokens = await inParallel(codes, inFlight, (code) => side.token(code));
  const each = tokens.flatMap((token) => Array.from({ length: ofToken / proofs }, () => token));
  return inParallel(each, inFlight, async (token) => {
    const keys: readonly HolderKey[] = Array.from({ length: proofs }, holderKey);
    return { token, body: side.body(configurationId, keys, await side.nonce()) };
  });
}

/** Credentials per CPU second of both sides. */
async function requests(exchange: Exchange, count: number, proofs: number) {
  const [ours, raw] = await exchange.offer(Math.ceil(count / ofToken));
  const rate = async (side: ExchangeSide, codes: readonly string[]) => {
    const prepared = await prepare(side, exchange, { codes, proofs });
    const send = ({ token, body }: Prepared) => side.credentials(token, body);
    return proofs * (await perCpuSecond(side.pid, prepared, inFlight, send));
  };
  return [await rate(exchange.ours, ours), await rate(exchange.raw, raw)] as const;
}

/** Whole flows per CPU second of both sides. */
async function flows(exchange: Exchange, count: number) {
  const [ours, raw] = await exchange.offer(count);
  const rate = (side: ExchangeSide, codes: readonly string[]) =>
    perCpuSecond(side.pid, codes, inFlight, async (code) => {
      const [token, nonce] = [await side.token(code), await side.nonce()];
      await side.credentials(token, side.body(exchange.configurationId, [holderKey()], nonce));
    });
  return [await rate(exchange.ours, ours), await rate(exchange.raw, raw)] as const;
}

/** CPU for a credential in a batch, and alone, in microseconds. */
async function batches(exchange: Exchange, count: number) {
  const [many] = await requests(exchange, count, ofToken);
  const [one] = await requests(exchange, count, 1);
  return [1e6 / many, 1e6 / one] as const;
}
