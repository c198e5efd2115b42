import { fileURLToPath } from 'node:url';
import { type Counts, script } from '../programs.ts';

const jar = fileURLToPath(new URL('../../../dist/bin/openapi-generator-cli-7.25.0.jar', import.meta.url));

/**
 * The OpenAPI document of an installation, read by general programs: a validator and generators, whose clients then
 * perform a journey from sign-in to a proof.
 *
 * @param account `--email` and `--password-file` of an administrator.
 */
export async function readDocument(gatewayUrl: string, account: readonly string[]): Promise<Counts[]> {
  return [
    await script('openapi/document_checks.py', [gatewayUrl]),
    await script('openapi/generated_clients.py', [gatewayUrl, ...account, '--openapi-generator', jar]),
  ];
}
