import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apply, kubectl, must } from './kubectl.ts';

/** A volume of a few MiB for one claim, on a node that has its files on this machine. */
export interface SmallVolume {
  /** Expands it, as a CSI driver does for a larger claim. */
  grow(): void;
  /** Removes it, after its claim is deleted. */
  remove(): void;
}

const beginMiB = 16;
const grownMiB = 128;

/**
 * A volume in memory for one claim. Undefined, with a printed reason, where this machine must not mount or the volumes of
 * the cluster are elsewhere.
 */
export async function makeSmallVolume(claim: {
  readonly namespace: string;
  readonly name: string;
}): Promise<SmallVolume | undefined> {
  const existing = ['get', 'storageclass', 'standard', '--ignore-not-found'];
  const provisioner = await must('kubectl', [...existing, '-o', 'jsonpath={.provisioner}']);
  if (provisioner !== 'bare-cluster/local') return skipped(`the volumes of ${provisioner} are elsewhere`);
  const path = mkdtempSync(join(tmpdir(), 'chancery-volume-'));
  const mount = (...args: readonly string[]) =>
    execFileSync('mount', ['-t', 'tmpfs', ...args, 'small', path], { stdio: 'pipe' });
  try {
    mount('-o', `size=${beginMiB}m,mode=0777`);
  } catch (error) {
    rmSync(path, { recursive: true });
    return skipped(String(error).split('\n')[0] ?? '');
  }
  const [node = ''] = (await kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}')).split(' ');
  await apply('default', volumeOf(claim, path, node));
  return {
    grow: () => mount('-o', `remount,size=${grownMiB}m`),
    remove: () => {
      execFileSync('umount', ['--lazy', path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

function skipped(why: string): undefined {
  process.stdout.write(`SKIPPED: no small volume can be made for this cluster: ${why}\n`);
}

function volumeOf(claim: { readonly namespace: string; readonly name: string }, path: string, node: string) {
  const expression = { key: 'kubernetes.io/hostname', operator: 'In', values: [node] };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `small-${claim.name}` },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'standard',
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claim },
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [expression] }] } },
    },
  };
}

const filling = `
const { openSync, writeSync } = require('node:fs');
const file = openSync('/data/filler', 'w');
const block = Buffer.alloc(4096);
try {
  for (let blocks = 0; blocks < ${(grownMiB * 1024) / 4}; blocks += 1) writeSync(file, block);
  console.log('there is room left');
} catch (error) {
  console.log(error.code);
}
`;

/** Fills the volume of a validator's pod. */
export async function fillVolume(namespace: string, pod: string): Promise<void> {
  const output = await must('kubectl', ['exec', '-n', namespace, pod, '--', '/usr/bin/node', '-e', filling]);
  if (output.trim() !== 'ENOSPC') throw new Error(`the volume of ${pod}: ${output}`);
}
