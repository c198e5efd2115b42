import { mkdirSync, rmSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openTable, type Row, type Table } from '../report.ts';
import { openStage } from '../stage.ts';
import { besideKeycloak, keycloakHome } from './keycloak.ts';
import { buildPrograms, type Programs } from './program.ts';
import { besideCometBft, besideTessera, type Match } from './rows.ts';

interface Pairing {
  readonly name: string;
  readonly what: string;
  readonly validators: 1 | 4;
  measure(match: Match): Promise<readonly Row[]>;
}

const pairings: readonly Pairing[] = [
  { name: 'one', what: 'CometBFT with one node', validators: 1, measure: besideCometBft },
  { name: 'tessera', what: 'Tessera on POSIX files', validators: 1, measure: besideTessera },
  { name: 'four', what: 'CometBFT with four nodes', validators: 4, measure: besideCometBft },
  { name: 'keycloak', what: 'Keycloak 26.7.0, password grants', validators: 1, measure: keycloakIfPresent },
];

async function keycloakIfPresent({ stage }: Match): Promise<readonly Row[]> {
  if (keycloakHome !== undefined) return besideKeycloak(stage, keycloakHome);
  write('left out: Keycloak: CHANCERY_TEST_KEYCLOAK names no unpacked distribution\n');
  return [];
}

const write = (text: string): void => void process.stdout.write(text);

function usage(): string {
  const lines = pairings.map(({ name, what }) => `  ${name.padEnd(10)} ${what}`);
  return `npm run bench-peers -- [PEER...]\n\nMeasures beside what is named, or beside everything:\n\n${lines.join('\n')}\n`;
}

/** Throws RangeError for a name that no pairing has. */
function chosen(names: readonly string[]): readonly Pairing[] {
  const unknown = names.find((name) => pairings.every((each) => each.name !== name));
  if (unknown !== undefined) throw new RangeError(`there is no peer ${unknown}; --help lists them`);
  return names.length === 0 ? pairings : pairings.filter(({ name }) => names.includes(name));
}

async function measureAll(wanted: readonly Pairing[], programs: Programs): Promise<void> {
  write(
    `${cpus().length} CPUs, ${cpus()[0]?.model}, Node ${process.version}, CometBFT 1.0.1, Tessera 1.0.4\n\n`,
  );
  const table: Table = openTable(write, ['ours against theirs (medians)', 'ratio (spread)']);
  for (const { validators, measure } of wanted) {
    const stage = await openStage(validators);
    try {
      table.print(await measure({ stage, programs }));
    } finally {
      await stage.close();
    }
  }
  process.exitCode = table.close() ? 0 : 1;
}

async function main(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { help: { type: 'boolean', default: false, short: 'h' } },
  });
  const wanted = chosen(positionals);
  if (values.help) {
    write(usage());
    return;
  }
  const into = fileURLToPath(new URL('../../../dist/peers', import.meta.url));
  mkdirSync(into, { recursive: true });
  const programs = buildPrograms(into);
  if (typeof programs === 'string') {
    write(`The peers cannot be built: ${programs}\n`);
    process.exitCode = 1;
    return;
  }
  try {
    await measureAll(wanted, programs);
  } finally {
    rmSync(into, { recursive: true, force: true });
  }
}

await main(process.argv.slice(2));
