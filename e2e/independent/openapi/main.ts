import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSystem } from '../../harness/system.ts';
import { type Counts, closeSuite } from '../programs.ts';
import { readDocument } from './document.ts';
import { fuzzInstallation } from './fuzz.ts';
import { readWithTypeScript } from './typescript-client.ts';

/** Runs the part of the independent programs that reads the OpenAPI document. */

async function documentOfNewSystem(): Promise<Counts[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-openapi-'));
  const system = await startSystem({ dataDir });
  try {
    const { gatewayUrl, adminEmail, adminPasswordFile } = system.state;
    const account = ['--email', adminEmail, '--password-file', adminPasswordFile];
    const python = await readDocument(gatewayUrl, account);
    return [...python, ...(await readWithTypeScript(gatewayUrl, [adminEmail, adminPasswordFile]))];
  } finally {
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

closeSuite('openapi', [...(await documentOfNewSystem()), ...(await fuzzInstallation())]);
