// A test must never reach a real service because the shell that started it knew one.
for (const name of Object.keys(process.env)) if (name.startsWith('BROWSER_POOL_')) delete process.env[name];
