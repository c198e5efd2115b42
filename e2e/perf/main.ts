import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSystem } from '../harness/system.ts';
import { growth } from './growth.ts';
import { heading, judge, type Row } from './report.ts';
import { gatewayCpu, minting, startAndMemory } from './services.ts';
import { openStage, type Stage } from './stage.ts';
import { latency, throughput } from './throughput.ts';

/** The mutual-TLS listener of a component process, from its environment. */
function listenerOf(stage: Stage, service: string): string {
  const environment = readFileSync(`/proc/${stage.pidOf(service)}/environ`, 'utf8').split('\0');
  const port = environment.find((one) => one.startsWith('CHANCERY_HTTPS_PORT='))?.split('=')[1];
  return `https://127.0.0.1:${port}`;
}

async function onStage(report: (rows: readonly Row[]) => void): Promise<void> {
  const stage = await openStage();
  try {
    report(await throughput(stage, listenerOf(stage, 'validator-0')));
    report([await latency(stage, listenerOf(stage, 'register'))]);
    report([await minting(stage)]);
    report([await gatewayCpu(stage, listenerOf(stage, 'tenant'))]);
    report([await growth(stage, listenerOf(stage, 'validator-0'))]);
  } finally {
    await stage.close();
  }
}

async function alone(report: (rows: readonly Row[]) => void): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'chancery-bench-start-'));
  try {
    await (await startSystem({ dataDir: dir })).stop();
    report(await startAndMemory(dir));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  if (process.platform !== 'linux') {
    process.stdout.write('The benchmark reads /proc and runs on Linux only.\n');
    return;
  }
  process.stdout.write(`${cpus().length} CPUs, ${cpus()[0]?.model}, Node ${process.version}\n\n${heading}\n`);
  let missed = 0;
  const report = (rows: readonly Row[]): void => {
    for (const { line, holds } of rows.map(judge)) {
      process.stdout.write(`${line}\n`);
      missed += holds ? 0 : 1;
    }
  };
  await onStage(report);
  await alone(report);
  process.stdout.write(missed === 0 ? '\nall bounds hold\n' : `\n${missed} bounds missed\n`);
  process.exitCode = missed === 0 ? 0 : 1;
}

await main();
