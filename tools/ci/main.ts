import { execFileSync } from 'node:child_process';
import { chooseClusterFiles } from './cluster-files.ts';

/** Prints the cluster files of this CI run, one per line. Without a history it prints all files. */

function git(...words: readonly string[]): string[] {
  return execFileSync('git', words, { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line !== '');
}

const files = git('ls-files', '*.cluster.test.ts');
const [commit = ''] = git('rev-parse', 'HEAD');
// the last commit counts at any age
const changed = [
  ...git('log', '--since=1 day ago', '--format=', '--name-only'),
  ...git('show', '--format=', '--name-only', 'HEAD'),
];
process.stdout.write(`${chooseClusterFiles({ files, commit, changed }).join('\n')}\n`);
