#!/usr/bin/env node
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { operatorError } from '../errors.ts';
import { run, type Surface } from './run.ts';

const maxOutputBytes = 64 * 1024 * 1024;
const timeoutMs = 60_000;

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const surface: Surface = {
  readFile: async (path) => {
    try {
      return path === '-' ? await text(process.stdin) : await readFile(path, 'utf8');
    } catch (error) {
      throw operatorError('FILE_UNREADABLE', messageOf(error), { cause: error });
    }
  },
  kubectl: async (args) => {
    try {
      const options = { maxBuffer: maxOutputBytes, timeout: timeoutMs };
      return (await promisify(execFile)('kubectl', [...args], options)).stdout;
    } catch (error) {
      throw operatorError('KUBECTL_FAILED', messageOf(error), { cause: error });
    }
  },
  print: (line) => void process.stdout.write(line),
  complain: (line) => void process.stderr.write(line),
  nowMs: () => Date.now(),
};

process.exitCode = await run(process.argv.slice(2), surface);
