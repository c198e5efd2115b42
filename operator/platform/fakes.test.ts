import { fakeOrganizations } from './testing/fake-organizations.ts';
import { fakeRegisters } from './testing/fake-registers.ts';
import { organizationsContract } from './testing/organizations.contract.ts';
import { registersContract } from './testing/registers.contract.ts';

organizationsContract('the fake', async () => ({
  organizations: fakeOrganizations(),
  stop: async () => undefined,
}));

registersContract('the fake', async () => {
  const registers = fakeRegisters();
  await registers.ensure();
  return {
    registers,
    organizationId: '11111111-1111-4111-8111-111111111111',
    validators: ['validator-0', 'validator-1', 'validator-2', 'validator-3'],
    seal: async () => registers.seal(),
    stop: async () => undefined,
  };
});
