<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name></name>
    <message numerus="yes">
        <source>Loads the model %n time(s), each time with other values of batch_size and num_worker, on a node of its own; about {time}. Your node and its settings are left alone.</source>
        <translation>
            <numerusform>Loads the model %n time, each time with other values of batch_size and num_worker, on a node of its own; about {time}. Your node and its settings are left alone.</numerusform>
            <numerusform>Loads the model %n times, each time with other values of batch_size and num_worker, on a node of its own; about {time}. Your node and its settings are left alone.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n model(s) in {place}</source>
        <translation>
            <numerusform>%n model in {place}</numerusform>
            <numerusform>%n models in {place}</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n slot(s)</source>
        <translation>
            <numerusform>%n slot</numerusform>
            <numerusform>%n slots</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n layer(s) on the GPU</source>
        <translation>
            <numerusform>%n layer on the GPU</numerusform>
            <numerusform>%n layers on the GPU</numerusform>
        </translation>
    </message>
</context>
</TS>
