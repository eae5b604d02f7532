// A server on the official TypeScript SDK 2.x, over Streamable HTTP on 127.0.0.1: both eras.
//
// `node2_server.cjs [--port N] [--stateless] [--json]`, with NODE_PATH on the folder of its packages; it prints its
// URL when it listens. The tools are a part of those in README.md beside this file; `GET /counts` is as in
// http_server.py. In the modern era no server has sessions; `--stateless` takes them from the legacy one too.
"use strict";

const http = require("node:http");
const { randomUUID } = require("node:crypto");
const sdk = require("@modelcontextprotocol/server");
const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = require("@modelcontextprotocol/node");

const given = process.argv.slice(2);
const port = given.includes("--port") ? Number(given[given.indexOf("--port") + 1]) : 0;
const stateless = given.includes("--stateless");
const json = given.includes("--json");

const requests = {};
const executed = {};
const cancelled = [];
const count = (table, key) => (table[key] = (table[key] ?? 0) + 1);
const text = (said) => ({ content: [{ type: "text", text: String(said) }] });
const schemas = new Map(); // compiled once: a server is built for each request of the modern era
const object = (properties) => {
    const schema = { type: "object", properties, required: Object.keys(properties) };
    const key = JSON.stringify(schema);
    if (!schemas.has(key)) schemas.set(key, sdk.fromJsonSchema(schema));
    return schemas.get(key);
};

const VISITOR = {
    type: "object",
    properties: {
        name: { type: "string", description: "Your name" },
        newsletter: { type: "boolean", default: false, description: "Send the newsletter" },
    },
    required: ["name"],
};

function progress(ctx, progress, total, message) {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken === undefined) return Promise.resolve();
    const params = { progressToken, progress, total, message };
    return ctx.mcpReq.notify({ method: "notifications/progress", params });
}

function build() {
    const server = new sdk.McpServer(
        { name: "node2-peer", version: "2.4.0" },
        { instructions: "A peer of the interop tests.", capabilities: { logging: {} } },
    );
    const tool = (name, description, properties, run) =>
        server.registerTool(name, { description, inputSchema: object(properties) }, run);

    server.registerTool(
        "add",
        {
            description: "Add two numbers.",
            inputSchema: object({ a: { type: "number" }, b: { type: "number" } }),
            outputSchema: object({ result: { type: "number" } }),
        },
        async ({ a, b }) => ({ ...text(a + b), structuredContent: { result: a + b } }),
    );
    tool("echo", "Give the text back.", { text: { type: "string" } }, async ({ text: said }) => text(said));
    tool("fail", "Fail with that text.", { text: { type: "string" } }, async ({ text: said }) => ({
        ...text(said),
        isError: true,
    }));
    tool("tally", "Count the calls with that mark.", { mark: { type: "string" } }, async ({ mark }) =>
        text(count(executed, mark)),
    );
    tool("count", "Count, with progress.", { steps: { type: "integer" } }, async ({ steps }, ctx) => {
        for (let step = 1; step <= steps; step++) await progress(ctx, step, steps, `step ${step}`);
        return text(`counted to ${steps}`);
    });
    const slow = { mark: { type: "string" }, seconds: { type: "number" } };
    tool("slow", "Wait; a cancellation is written down.", slow, async ({ mark, seconds }, ctx) => {
        const ended = new Promise((done) => {
            const timer = setTimeout(done, seconds * 1000);
            ctx.mcpReq.signal.addEventListener("abort", () => {
                clearTimeout(timer);
                cancelled.push(mark);
                done();
            });
        });
        await progress(ctx, 0, seconds, "started");
        await ended;
        return text(`waited ${mark}`);
    });
    server.registerTool(
        "cancellations",
        {
            description: "The marks of the slow calls that were cancelled.",
            outputSchema: object({ result: { type: "array", items: { type: "string" } } }),
        },
        async () => ({ ...text(cancelled.join(" ")), structuredContent: { result: cancelled } }),
    );
    server.registerTool("ask", { description: "Ask the user who they are, with a form." }, async (ctx) => {
        const answer = sdk.inputResponse(ctx.mcpReq.inputResponses, "visitor");
        if (answer.kind === "missing") {
            const visitor = sdk.inputRequired.elicit({ message: "Who are you?", requestedSchema: VISITOR });
            return sdk.inputRequired({ inputRequests: { visitor }, requestState: "asked for a visitor" });
        }
        if (answer.action !== "accept") return text(answer.action);
        const newsletter = answer.content.newsletter ? "True" : "False";
        return text(`accept ${answer.content.name} ${newsletter}`);
    });
    tool("sample", "Ask the client's model.", { prompt: { type: "string" } }, async ({ prompt }, ctx) => {
        const answer = sdk.inputResponse(ctx.mcpReq.inputResponses, "model");
        if (answer.kind === "missing") {
            const messages = [{ role: "user", content: { type: "text", text: prompt } }];
            const params = { messages, maxTokens: 50, systemPrompt: "Be brief." };
            return sdk.inputRequired({ inputRequests: { model: sdk.inputRequired.createMessage(params) } });
        }
        return text(`${answer.result.model}: ${answer.result.content.text}`);
    });
    return server;
}

const options = { legacy: stateless ? "stateless" : "reject", responseMode: json ? "json" : "sse" };
const modern = toNodeHandler(sdk.createMcpHandler(build, options));
const sessions = new Map();

async function withSession(req, res, body) {
    const id = req.headers["mcp-session-id"];
    let transport = sessions.get(id);
    if (transport === undefined && id !== undefined) {
        const error = { code: -32001, message: "Session not found" };
        res.writeHead(404, { "content-type": "application/json" });
        res.end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
        return;
    }
    if (transport === undefined) {
        transport = new NodeStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            enableJsonResponse: json,
            onsessioninitialized: (id) => sessions.set(id, transport),
        });
        transport.onclose = () => sessions.delete(transport.sessionId);
        await build().connect(transport);
    }
    await transport.handleRequest(req, res, body);
}

async function read(req) {
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    return chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
}

const listening = http.createServer(async (req, res) => {
    if (req.url === "/counts") {
        res.writeHead(200, { "content-type": "application/json" });
        res.end(JSON.stringify({ requests, executed }));
        return;
    }
    const body = await read(req);
    count(requests, req.method === "POST" ? (body.method ?? "answer") : req.method);
    const legacy = !stateless && (await sdk.isLegacyRequest(await toWebRequest(req, body), body));
    await (legacy ? withSession : modern)(req, res, body);
});
// Five seconds are Node's own: how long it keeps an idle connection.
listening.keepAliveTimeout = 5000;
listening.listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${listening.address().port}/mcp`));
process.on("SIGTERM", () => process.exit(0));
